//! Sizes as people write them.

use std::num::IntErrorKind;

/// Units by name, longest first where one ends like another.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Bytes of `text`, such as `256MiB`; at least 1.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    match parse_or_none(text)? {
        0 => Err("nothing to copy; choose at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Bytes of `text`, which may be 0.
pub(crate) fn parse_or_none(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .unwrap_or((text, 1));
    let too_large = || "more than memory can hold; choose a smaller size".to_owned();
    let number = digits.trim_end().parse::<u64>();
    let number = number.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => too_large(),
        _ => "not a size; write a whole number, alone or with KiB, MiB, GiB, TiB, KB, MB, GB or TB"
            .to_owned(),
    })?;
    number
        .checked_mul(unit)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes <= isize::MAX as usize)
        .ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, bytes) in [
            ("1", 1),
            ("1000000", 1_000_000),
            ("512B", 512),
            ("4KiB", 4096),
            ("256MiB", 256 << 20),
            ("1 GiB", 1 << 30),
            ("2KB", 2000),
            ("3MB", 3_000_000),
            ("1GB", 1_000_000_000),
            ("2TiB", 2 << 40),
            ("3TB", 3_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_or_none("0"), Ok(0));
        assert_eq!(parse_or_none("4KiB"), Ok(4096));
    }

    #[test]
    fn words_that_are_no_size() {
        for text in [
            "",
            "MiB",
            "12XB",
            "-1",
            "1.5GiB",
            "0",
            "0MiB",
            "99999999999GiB",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
