//! Element types, by our names and by those of torch and numpy.

use pinlane::load::Dtype;

/// Other names, in lower case.
const ALIASES: [(&str, Dtype); 16] = [
    ("bfloat16", Dtype::Bf16),
    ("float16", Dtype::F16),
    ("half", Dtype::F16),
    ("float32", Dtype::F32),
    ("float", Dtype::F32),
    ("float64", Dtype::F64),
    ("double", Dtype::F64),
    ("uint8", Dtype::U8),
    ("int8", Dtype::I8),
    ("uint16", Dtype::U16),
    ("int16", Dtype::I16),
    ("uint32", Dtype::U32),
    ("int32", Dtype::I32),
    ("uint64", Dtype::U64),
    ("int64", Dtype::I64),
    ("complex64", Dtype::C64),
];

/// Finds `bf16`, `BF16`, `bfloat16`, `torch.bfloat16`, …
fn find(text: &str) -> Option<Dtype> {
    let name = text.trim().to_ascii_lowercase();
    let mut packages = ["torch.", "numpy.", "np."].iter();
    let bare = packages.find_map(|package| name.strip_prefix(package));
    let bare = bare.unwrap_or(&name);
    match ALIASES.iter().find(|(alias, _)| *alias == bare) {
        Some((_, dtype)) => Some(*dtype),
        None => Dtype::from_name(&bare.to_ascii_uppercase()),
    }
}

pub(crate) fn any(text: &str) -> Result<Dtype, String> {
    one_of(text, &Dtype::ALL)
}

pub(crate) fn one_of(text: &str, choice: &[Dtype]) -> Result<Dtype, String> {
    let found = find(text).filter(|dtype| choice.contains(dtype));
    found.ok_or_else(|| {
        let names: Vec<_> = choice.iter().map(|dtype| dtype.name()).collect();
        format!("use one of {}", names.join(", ").to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ours_and_of_others() {
        for (text, dtype) in [
            ("bf16", Dtype::Bf16),
            ("BF16", Dtype::Bf16),
            ("torch.bfloat16", Dtype::Bf16),
            ("bfloat16", Dtype::Bf16),
            ("torch.half", Dtype::F16),
            ("Float16", Dtype::F16),
            ("float", Dtype::F32),
            ("np.float32", Dtype::F32),
            ("double", Dtype::F64),
            ("torch.uint8", Dtype::U8),
            ("bool", Dtype::Bool),
            ("f8_e4m3", Dtype::F8E4M3),
        ] {
            assert_eq!(any(text), Ok(dtype), "{text}");
        }
        for text in ["", "torch.", "bf17", "tf.float32"] {
            assert!(any(text).is_err_and(|error| error.contains("bf16")));
        }
        let floats = one_of("i64", &[Dtype::F16, Dtype::F32]);
        assert_eq!(floats, Err("use one of f16, f32".to_owned()));
    }
}
