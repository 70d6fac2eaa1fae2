//! Times such as `4ms`.

/// Units of time in nanoseconds; `s` ends all others, so it is last.
const TIMES: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// 1000 hours.
pub(crate) const DURATION_NS_MAX: u64 = 3_600_000_000_000_000;

/// Splits a number from its unit. `None` without a known unit.
fn split_time(text: &str) -> Option<(&str, f64)> {
    let found = |(name, unit): &(&str, f64)| Some((text.strip_suffix(name)?.trim_end(), *unit));
    TIMES.iter().find_map(found)
}

/// Parses a time such as `4ms` or `1.5s` to nanoseconds. A bare 0 needs no unit.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    const FORM: &str = "not a time; use a number with ns, us, ms or s, such as 850us or 1.5s";
    let number = |digits: &str| digits.parse::<f64>().map_err(|_| FORM.to_owned());
    let text = text.trim();
    let ns = match split_time(text) {
        Some((digits, unit)) => number(digits)? * unit,
        None if number(text)? == 0.0 => 0.0,
        None => return Err("a time needs a unit: ns, us, ms or s, such as 4ms".to_owned()),
    };
    match ns {
        _ if ns.is_nan() => Err("not a number; use a time such as 4ms".to_owned()),
        _ if ns < 0.0 => Err("must not be negative".to_owned()),
        _ if ns > DURATION_NS_MAX as f64 => Err("must be at most 1000 hours".to_owned()),
        _ => Ok(ns.round() as u64),
    }
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
            assert_eq!(duration(text), Ok(ns), "{text}");
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
            let error = duration(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
