//! Parameters of kernels, as PTX declares them.

/// A parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PtxParam {
    /// An integer of so many bytes, signed or not: PTX does not say. Pointers are integers of 8 bytes.
    Integer(usize),
    /// A floating-point number of so many bytes.
    Float(usize),
    /// Anything else, such as a struct: so many bytes.
    Bytes(usize),
}

impl PtxParam {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Integer(bytes) | Self::Float(bytes) | Self::Bytes(bytes) => bytes,
        }
    }
}

/// The parameters of a kernel, by its name in the PTX. `None` if there is no such kernel, or if it is declared
/// in a way that the compiler does not use.
pub(crate) fn params(ptx: &str, entry: &str) -> Option<Vec<PtxParam>> {
    let declared = ptx.match_indices(".entry").find_map(|(at, keyword)| {
        let after = ptx[at + keyword.len()..].trim_start();
        let after = after.strip_prefix(entry)?.trim_start();
        after.strip_prefix('(')
    })?;
    let (list, _) = declared.split_once(')')?;
    let list = list.trim();
    if list.is_empty() {
        return Some(Vec::new());
    }
    list.split(',').map(param).collect()
}

/// `.param .u64 .ptr .align 1 fill_param_0`, or `.param .align 8 .b8 fill_param_2[16]`.
fn param(declared: &str) -> Option<PtxParam> {
    let mut words = declared.split_whitespace();
    let name = words.clone().next_back()?;
    let (kind, bits) = words.find_map(|word| {
        let kind = word.strip_prefix('.')?;
        let digits = kind.strip_prefix(['u', 's', 'b', 'f'])?;
        Some((kind, digits.parse::<usize>().ok()?))
    })?;
    let bytes = bits / 8;
    if let Some((_, len)) = name.split_once('[') {
        let len: usize = len.strip_suffix(']')?.parse().ok()?;
        return Some(PtxParam::Bytes(bytes.checked_mul(len)?));
    }
    match kind.starts_with('f') {
        true => Some(PtxParam::Float(bytes)),
        false => Some(PtxParam::Integer(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 9.2\n.visible .entry _Z4fillPfi(\n\t.param .u64 .ptr .align 1 _Z4fillPfi_param_0,\n\t\
        .param .u32 _Z4fillPfi_param_1\n)\n{ }\n.visible .entry fill(\n.param .f64 fill_param_0,\n\
        .param .align 8 .b8 fill_param_1[16],\n.param .u8 fill_param_2,\n.param .s16 fill_param_3\n)\n{ }\n\
        .entry none()\n{ }";

    #[test]
    fn parameters_are_those_of_the_kernel() {
        use PtxParam::{Bytes, Float, Integer};
        assert_eq!(params(PTX, "_Z4fillPfi").unwrap(), [Integer(8), Integer(4)]);
        assert_eq!(
            params(PTX, "fill").unwrap(),
            [Float(8), Bytes(16), Integer(1), Integer(2)]
        );
        assert_eq!(params(PTX, "none").unwrap(), []);
        assert_eq!(params(PTX, "fil"), None);
    }

    #[test]
    fn what_is_not_understood_has_no_parameters() {
        for list in [
            ".param x",
            ".reg .pred p",
            ".param .b8 x[",
            ".param .b8 x[9z]",
            ",",
        ] {
            assert_eq!(params(&format!(".entry k({list})"), "k"), None, "{list}");
        }
        assert_eq!(params(".entry k(", "k"), None);
        assert_eq!(PtxParam::Bytes(16).bytes(), 16);
    }
}
