//! Values of command-line flags.

pub(crate) mod dtype;
pub(crate) mod number;
pub(crate) mod size;

use pinlane::internal::{NumberError, parse_size};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Several items in one value of a flag. To clap, the name `Vec` would mean a flag that may be repeated.
pub(crate) type List<T> = Vec<T>;

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

const BYTES_PER_S_MAX: u64 = 1_000_000_000_000_000_000;

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

/// A parser of values by name, without a second enum for clap. `text` is a value's name and help text, such
/// as `auto: Whatever is faster`.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    text: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let split = move |value: &T| text(*value).split_once(": ").expect("a name and a text");
    let possible = values.iter().map(split);
    let possible = possible.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(possible).map(move |chosen| {
        let chosen = values.iter().find(|value| split(value).0 == chosen);
        *chosen.expect("clap accepts only these names")
    })
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
    fn invalid_times_and_rates() {
        let times = [
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
        ];
        let rates = [
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
        ];
        let times = times.map(|(text, reason)| (text, duration(text), reason));
        let rates = rates.map(|(text, reason)| (text, rate(text), reason));
        for (text, parsed, reason) in times.into_iter().chain(rates) {
            let error = parsed.expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
