//! Names of kernels in PTX, and the names that they have in the source.

/// Names of a PTX module's kernels.
pub(crate) fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    // The compiler writes `.visible .entry NAME(` on one line.
    ptx.lines().filter_map(|line| {
        let (_, after) = line.split_once(".entry ")?;
        let after = after.trim_start();
        let end = after.find(|c: char| !(c.is_alphanumeric() || "_$".contains(c)));
        Some(&after[..end.unwrap_or(after.len())])
    })
}

/// The name in the source of a kernel that is not `extern "C"`: `_Z4fillPff` is `fill`, and
/// `_ZN4math4fillEPf` is `math::fill`. `None` for other names, templates among them.
pub(crate) fn source_name(entry: &str) -> Option<String> {
    let mangled = entry.strip_prefix("_Z")?;
    let (nested, mut rest) = match mangled.strip_prefix('N') {
        Some(rest) => (true, rest),
        None => (false, mangled),
    };
    let mut parts = Vec::new();
    loop {
        let (name, after) = length_and_name(rest)?;
        parts.push(name);
        rest = after;
        match nested {
            true if rest.starts_with('E') => break,
            true => {}
            false => break,
        }
    }
    // `I` begins the arguments of a template.
    (!rest.starts_with('I')).then(|| parts.join("::"))
}

/// `4fillPff` is `fill` and `Pff`.
fn length_and_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let name = text.get(digits..digits.checked_add(length)?)?;
    Some((name, &text[digits + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_ptx() {
        let ptx = ".version 8.0\n.visible .entry _Z4fillPff(\n)\n{ }\n.entry plain ( )\n.weak .entry a$b(";
        assert_eq!(
            entries(ptx).collect::<Vec<_>>(),
            ["_Z4fillPff", "plain", "a$b"]
        );
    }

    #[test]
    fn mangled_names_have_names_in_the_source() {
        let cases = [
            ("_Z4fillPff", Some("fill")),
            ("_ZN4math4fillEPf", Some("math::fill")),
            ("plain", None),
            ("_Z4fillIfEvPT_", None),
            ("_Z9fillPf", None),
            ("_Z", None),
            ("_ZN4math", None),
            ("_Z99999999999999999999a", None),
            ("_Z18446744073709551615a", None),
        ];
        for (entry, name) in cases {
            assert_eq!(source_name(entry).as_deref(), name, "{entry}");
        }
    }
}
