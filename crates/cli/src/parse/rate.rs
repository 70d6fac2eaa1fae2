//! Rates such as `250GB/s`.

use pinlane::internal::{NumberError, parse_size};

const BYTES_PER_S_MAX: u64 = 1_000_000_000_000_000_000;

/// Parses a rate such as `250GB/s` or `1.2TB/s` to bytes per second; at least 1.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let not_a_rate = "not a rate; use a number with MB/s, GB/s or TB/s, such as 250GB/s";
    let size = text.trim().strip_suffix("/s");
    // `250G` would be 250 GiB.
    let size = size
        .filter(|size| size.ends_with(['b', 'B']))
        .ok_or(not_a_rate)?;
    match parse_size(size) {
        Ok(0) | Err(NumberError::Fraction) => Err("must be at least 1B/s".to_owned()),
        Ok(rate) if rate <= BYTES_PER_S_MAX => Ok(rate),
        Ok(_) | Err(NumberError::TooLarge) => Err("must be at most 1000000TB/s".to_owned()),
        Err(_) => Err(not_a_rate.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_with_units() {
        for (text, bytes_per_s) in [
            ("250GB/s", 250_000_000_000),
            ("1.2TB/s", 1_200_000_000_000),
            ("1B/s", 1),
            ("2 KB/s", 2_000),
            ("3MB/s", 3_000_000),
            ("1KiB/s", 1024),
            ("1MiB/s", 1 << 20),
            ("1.5GiB/s", 3 << 29),
            ("1TiB/s", 1 << 40),
            ("250gb/s", 250_000_000_000),
            ("1000000TB/s", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(rate(text), Ok(bytes_per_s), "{text}");
        }
    }

    #[test]
    fn invalid_rates() {
        for (text, reason) in [
            ("", "not a rate"),
            ("250", "not a rate"),
            ("250GB", "not a rate"),
            ("250GB /s", "not a rate"),
            ("GB/s", "not a rate"),
            ("x GB/s", "not a rate"),
            ("250G/s", "not a rate"),
            ("nanGB/s", "not a rate"),
            ("-1GB/s", "not a rate"),
            ("infGB/s", "not a rate"),
            ("0GB/s", "at least 1B/s"),
            ("0.5B/s", "at least 1B/s"),
            ("0.0001KB/s", "at least 1B/s"),
            ("1000001TB/s", "at most 1000000TB/s"),
        ] {
            let error = rate(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
