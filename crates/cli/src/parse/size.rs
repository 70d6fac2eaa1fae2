//! Sizes in bytes, and lists and ranges of them.

use pinlane::internal::{NumberError, parse_size};

use super::List;

const SIZES_MAX: usize = 256;

/// Parses a size such as `256MiB`; at least 1 byte.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    match parse_or_zero(text)? {
        0 => Err("must be at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

pub(crate) fn parse_or_zero(text: &str) -> Result<usize, String> {
    let bytes = match parse_size(text) {
        Ok(bytes) => usize::try_from(bytes).ok(),
        Err(NumberError::TooLarge) => None,
        Err(NumberError::Fraction) => return Err("must be a whole number of bytes".to_owned()),
        Err(_) => {
            return Err(
                "not a size; use a number, optionally with a unit, such as 4096, 256MiB, 1.5G \
                        (GiB) or 2GB"
                    .to_owned(),
            );
        }
    };
    bytes
        .filter(|bytes| *bytes <= isize::MAX as usize)
        .ok_or_else(|| "too large for memory; use a smaller size".to_owned())
}

/// Parses a comma-separated list of sizes and ranges to distinct sizes in ascending order. `4KiB..1MiB`
/// doubles from one size to the next, `4KiB..1MiB*4` grows by a factor of four. The end is included if a
/// step reaches it exactly.
pub(crate) fn parse_list(text: &str) -> Result<List<usize>, String> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        match item.split_once("..") {
            None => sizes.push(parse_item(item)?),
            Some((first, rest)) => push_range(first, rest, &mut sizes)?,
        }
        if sizes.len() > SIZES_MAX {
            return Err(format!("more than {SIZES_MAX} sizes"));
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn parse_item(text: &str) -> Result<usize, String> {
    parse(text).map_err(|reason| format!("`{}`: {reason}", text.trim()))
}

fn push_range(first: &str, rest: &str, sizes: &mut Vec<usize>) -> Result<(), String> {
    let (last, factor) = match rest.split_once('*') {
        None => (rest, 2),
        Some((last, factor)) => {
            let factor = factor.trim().parse().ok().filter(|factor| *factor >= 2);
            let factor = factor.ok_or("the factor of a range must be at least 2, such as *4")?;
            (last, factor)
        }
    };
    let (first, last) = (parse_item(first)?, parse_item(last)?);
    if first > last {
        return Err("the range is descending; put the smaller size first".to_owned());
    }
    let all = std::iter::successors(Some(first), |bytes| bytes.checked_mul(factor));
    sizes.extend(all.take_while(|bytes| *bytes <= last));
    Ok(())
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
            ("256M", 256 << 20),
            ("256mb", 256_000_000),
            ("3.5GiB", 7 << 29),
            ("1e6", 1_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_or_zero("0"), Ok(0));
        assert_eq!(parse_or_zero("4KiB"), Ok(4096));
    }

    #[test]
    fn invalid_sizes() {
        let huge = "99999999999GiB";
        for text in ["", "MiB", "12XB", "-1", "1.5", "0", "0MiB", huge] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_and_ranges() {
        for (text, sizes) in [
            ("4KiB", &[4096][..]),
            ("1MiB, 4KiB,4096", &[4096, 1 << 20]),
            ("1KiB..8KiB", &[1024, 2048, 4096, 8192]),
            ("1KiB..20KiB*4", &[1024, 4096, 16_384]),
            ("3..3", &[3]),
            ("1KB..1MB*10", &[1000, 10_000, 100_000, 1_000_000]),
            ("7, 1..4", &[1, 2, 4, 7]),
        ] {
            assert_eq!(parse_list(text), Ok(sizes.to_vec()), "{text}");
        }
        let all = parse_list("1..8388607TiB").expect("a long range");
        assert_eq!(all.len(), 63);
    }

    #[test]
    fn invalid_lists() {
        for (text, reason) in [
            ("", "not a size"),
            ("4KiB,", "not a size"),
            ("..4KiB", "not a size"),
            ("4KiB..", "not a size"),
            ("4KiB...8KiB", "not a size"),
            ("8KiB..4KiB", "descending"),
            ("4KiB..8KiB*1", "at least 2"),
            ("4KiB..8KiB*", "at least 2"),
            ("4KiB..8KiB*-2", "at least 2"),
            ("4KiB*2", "not a size"),
            ("0..8", "at least 1"),
            ("99999999TiB", "too large for memory"),
            ("99999999999999999999", "too large for memory"),
        ] {
            let error = parse_list(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        let many: Vec<String> = (1..=300).map(|bytes| bytes.to_string()).collect();
        assert!(parse_list(&many.join(",")).is_err());
    }

    /// Random strings of the grammar's tokens never panic, and whatever parses is valid.
    #[test]
    fn random_strings() {
        const TOKENS: &str =
            "0|1|9|4|KiB|MiB|TiB|B|GB|m|..|...|.|*|,| |-|_|µ|e|18446744073709551615|\0";
        let tokens: Vec<_> = TOKENS.split('|').collect();
        let mut random = pinlane_model::SplitMix64::new(5);
        let rounds = if cfg!(debug_assertions) {
            100_000
        } else {
            1_000_000
        };
        for _ in 0..rounds {
            let chosen = (0..random.index(12)).map(|_| tokens[random.index(tokens.len())]);
            let text: String = chosen.collect();
            let _ = parse(&text);
            if let Ok(sizes) = parse_list(&text) {
                assert!(!sizes.is_empty() && sizes[0] > 0, "{text:?}");
                assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{text:?}");
            }
        }
    }
}
