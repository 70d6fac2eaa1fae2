//! Rates as people write them.

/// Units by name, longest first where one ends like another.
const UNITS: [(&str, f64); 9] = [
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
    ("TiB/s", 1_099_511_627_776.0),
    ("KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
    ("B/s", 1.0),
];

/// The fastest rate that makes sense.
const FASTEST: f64 = 1e18;

/// Bytes a second of `text`, such as `250GB/s` or `1.2TB/s`; at least 1.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .ok_or("not a rate; write a number with MB/s, GB/s or TB/s, such as 250GB/s")?;
    let number: f64 = digits.trim_end().parse().map_err(|_| {
        "not a rate; write a number before the unit, such as 250GB/s or 1.2TB/s".to_owned()
    })?;
    let bytes_per_s = number * unit;
    if bytes_per_s.is_nan() {
        return Err("not a number; write a rate such as 250GB/s".to_owned());
    }
    if bytes_per_s < 1.0 {
        return Err("less than 1 byte a second; write a rate such as 250GB/s".to_owned());
    }
    if bytes_per_s > FASTEST {
        return Err("more than any device does; choose at most 1000000TB/s".to_owned());
    }
    Ok(bytes_per_s.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_with_their_units() {
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
            ("1000000TB/s", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes_per_s), "{text}");
        }
    }

    #[test]
    fn words_that_are_no_rate() {
        for (text, reason) in [
            ("", "not a rate"),
            ("250", "not a rate"),
            ("250GB", "not a rate"),
            ("GB/s", "not a rate"),
            ("x GB/s", "not a rate"),
            ("nanGB/s", "not a number"),
            ("0GB/s", "less than 1 byte"),
            ("-1GB/s", "less than 1 byte"),
            ("0.5B/s", "less than 1 byte"),
            ("infGB/s", "more than any device"),
            ("1000001TB/s", "more than any device"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
