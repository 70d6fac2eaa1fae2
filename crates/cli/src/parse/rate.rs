//! Rates in bytes per second.

/// Units; `B/s` ends all others.
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

const BYTES_PER_S_MAX: f64 = 1e18;

/// Parses a rate such as `250GB/s` or `1.2TB/s`; at least 1 byte per second.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (digits, unit) = super::split_unit(text, &UNITS)
        .ok_or("not a rate; use a number with MB/s, GB/s or TB/s, such as 250GB/s")?;
    let number: f64 = digits
        .parse()
        .map_err(|_| "not a rate; put a number before the unit, such as 250GB/s".to_owned())?;
    let bytes_per_s = number * unit;
    if bytes_per_s.is_nan() {
        return Err("not a number; use a rate such as 250GB/s".to_owned());
    }
    if bytes_per_s < 1.0 {
        return Err("must be at least 1B/s".to_owned());
    }
    if bytes_per_s > BYTES_PER_S_MAX {
        return Err("must be at most 1000000TB/s".to_owned());
    }
    Ok(bytes_per_s.round() as u64)
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
            ("1000000TB/s", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes_per_s), "{text}");
        }
    }

    #[test]
    fn invalid_rates() {
        for (text, reason) in [
            ("", "not a rate"),
            ("250", "not a rate"),
            ("250GB", "not a rate"),
            ("GB/s", "not a rate"),
            ("x GB/s", "not a rate"),
            ("nanGB/s", "not a number"),
            ("0GB/s", "at least 1B/s"),
            ("-1GB/s", "at least 1B/s"),
            ("0.5B/s", "at least 1B/s"),
            ("infGB/s", "at most 1000000TB/s"),
            ("1000001TB/s", "at most 1000000TB/s"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
