//! Numbers as people read them.

use crate::plot::figures::rate;
use crate::timeline::layout::words::roughly;

/// One decimal, a trailing `.0` dropped: `6`, `55.4`.
pub(crate) fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A size in the largest unit that divides it: `256 MiB`, `1000 B`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

/// A size that is exact where it has a unit, and three digits of it where it has none.
#[must_use]
pub fn amount(bytes: u64) -> String {
    let exact = size(bytes);
    let is_short = exact
        .split(' ')
        .next()
        .is_some_and(|number| number.len() <= 3);
    match is_short && !exact.ends_with(" B") {
        true => exact,
        false => roughly(bytes),
    }
}

/// A rate of so many 1e9 bytes a second, with its unit: `55.4 GB/s`, `7.21 MB/s`.
pub(crate) fn byte_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if value == 0.0 || value >= 0.0995 || !value.is_finite() => {
            format!("{} GB/s", rate(value))
        }
        value if value >= 0.0000995 => format!("{} MB/s", rate(value * 1e3)),
        value => format!("{} KB/s", rate(value * 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_decimal_drops_a_trailing_zero_only() {
        for (value, text) in [
            (6.0, "6"),
            (5.96, "6"),
            (55.44, "55.4"),
            (10.0, "10"),
            (0.04, "0"),
            (0.05, "0.1"),
            (100.26, "100.3"),
        ] {
            assert_eq!(one_decimal(value), text);
        }
    }

    #[test]
    fn size_takes_the_largest_unit_that_divides() {
        for (bytes, text) in [
            (256 << 20, "256 MiB"),
            (1 << 30, "1 GiB"),
            (3 << 19, "1536 KiB"),
            (1000, "1000 B"),
            (1, "1 B"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn rates_have_the_unit_that_shows_them() {
        for (gb_per_s, text) in [
            (55.44, "55.4 GB/s"),
            (0.38, "0.38 GB/s"),
            (0.0994, "99.4 MB/s"),
            (0.000_764, "0.76 MB/s"),
            (0.000_000_5, "0.50 KB/s"),
            (0.0, "0.00 GB/s"),
        ] {
            assert_eq!(byte_rate(gb_per_s), text);
        }
    }

    #[test]
    fn amounts_have_few_digits() {
        for (bytes, text) in [
            (96 << 20, "96 MiB"),
            (1 << 40, "1.00 TiB"),
            ((1 << 30) + 1024, "1.00 GiB"),
            (26_188_850, "25.0 MiB"),
            (1000, "1000 B"),
        ] {
            assert_eq!(amount(bytes), text);
        }
    }
}
