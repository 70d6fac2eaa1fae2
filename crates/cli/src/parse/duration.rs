//! Times as people write them.

/// Units by name, longest first where one ends like another.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// The longest time that makes sense here: 1000 hours.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000_000;

/// Nanoseconds of `text`, such as `4ms` or `1.5s`. A bare 0 needs no unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let number = |digits: &str| {
        let digits = digits.trim_end();
        digits.parse::<f64>().map_err(|_| {
            "not a time; write a number with ns, us, ms or s, such as 850us or 1.5s".to_owned()
        })
    };
    let ns = match unit {
        Some((digits, unit)) => number(digits)? * unit,
        None => match number(text)? {
            0.0 => 0.0,
            _ => return Err("a time needs its unit: ns, us, ms or s, such as 4ms".to_owned()),
        },
    };
    if ns.is_nan() {
        return Err("not a number; write a time such as 4ms".to_owned());
    }
    if ns < 0.0 {
        return Err("less than no time; write a time such as 4ms".to_owned());
    }
    if ns > LONGEST_NS as f64 {
        return Err("more than 1000 hours; choose a shorter time".to_owned());
    }
    Ok(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_their_units() {
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
            ("3600000s", LONGEST_NS),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn words_that_are_no_time() {
        for (text, reason) in [
            ("", "not a time"),
            ("ms", "not a time"),
            ("4xs", "not a time"),
            ("4 ms 3 us", "not a time"),
            ("4", "unit"),
            ("4m", "not a time"),
            ("nan", "unit"),
            ("NaNms", "not a number"),
            ("-4ms", "less than no time"),
            ("infs", "more than 1000 hours"),
            ("-infs", "less than no time"),
            ("1e300s", "more than 1000 hours"),
            ("3600001s", "more than 1000 hours"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
