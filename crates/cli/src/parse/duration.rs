//! Times.

/// Units in nanoseconds; `s` ends all others.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// 1000 hours.
pub(crate) const DURATION_NS_MAX: u64 = 3_600_000_000_000_000;

/// Parses a time such as `4ms` or `1.5s` to nanoseconds. A bare 0 needs no unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let number = |digits: &str| {
        digits.parse::<f64>().map_err(|_| {
            "not a time; use a number with ns, us, ms or s, such as 850us or 1.5s".to_owned()
        })
    };
    let ns = match super::split_unit(text, &UNITS) {
        Some((digits, unit)) => number(digits)? * unit,
        None => match number(text.trim())? {
            0.0 => 0.0,
            _ => return Err("a time needs a unit: ns, us, ms or s, such as 4ms".to_owned()),
        },
    };
    if ns.is_nan() {
        return Err("not a number; use a time such as 4ms".to_owned());
    }
    if ns < 0.0 {
        return Err("must not be negative".to_owned());
    }
    if ns > DURATION_NS_MAX as f64 {
        return Err("must be at most 1000 hours".to_owned());
    }
    Ok(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_units() {
        for (text, ns) in [
            ("4ms", 4_000_000),
            ("850us", 850_000),
            ("850µs", 850_000),
            ("850μs", 850_000),
            ("1.5s", 1_500_000_000),
            (" 12 ns ", 12),
            (".5ms", 500_000),
            ("1e3us", 1_000_000),
            ("0", 0),
            ("0ms", 0),
            ("0.4ns", 0),
            ("3600000s", DURATION_NS_MAX),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn invalid_times() {
        for (text, reason) in [
            ("", "not a time"),
            ("ms", "not a time"),
            ("4xs", "not a time"),
            ("4 ms 3 us", "not a time"),
            ("4", "unit"),
            ("4m", "not a time"),
            ("nan", "unit"),
            ("NaNms", "not a number"),
            ("-4ms", "must not be negative"),
            ("infs", "at most 1000 hours"),
            ("-infs", "must not be negative"),
            ("1e300s", "at most 1000 hours"),
            ("3600001s", "at most 1000 hours"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
