//! Numbers of elements as people write them.

/// Elements of `text`: digits, which underscores may group.
pub(super) fn parse(text: &str) -> Result<usize, String> {
    let grouped = !text.starts_with('_') && !text.ends_with('_');
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !plain || !grouped {
        return Err("not a number of elements; write such as 10000000 or 10_000_000".to_owned());
    }
    digits
        .parse::<usize>()
        .ok()
        // Two vectors of four bytes each.
        .filter(|items| *items <= isize::MAX as usize / 8)
        .ok_or_else(|| "more than memory can hold; choose fewer elements".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_groups_of_them() {
        for (text, items) in [("0", 0), ("1", 1), ("10_000_000", 10_000_000), ("007", 7)] {
            assert_eq!(parse(text), Ok(items), "{text}");
        }
    }

    #[test]
    fn words_that_are_no_number() {
        for text in [
            "", "_", "_1", "1_", "-1", "+1", "1.5", "10M", "1e7", " 1", "٣",
        ] {
            assert!(
                parse(text).is_err_and(|error| error.contains("10_000_000")),
                "{text}"
            );
        }
        for text in [
            "18446744073709551616",
            "9223372036854775807",
            "99999999999999999999999",
        ] {
            assert!(
                parse(text).is_err_and(|error| error.contains("fewer")),
                "{text}"
            );
        }
    }
}
