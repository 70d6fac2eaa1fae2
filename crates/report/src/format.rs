//! Numbers, sizes and times as reports show them. A leaf: every other module may use it.

/// One decimal, with a trailing `.0` dropped: `6`, `55.4`.
pub(crate) fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A size in the largest unit that divides it: `256 MiB`, `1000 B`.
pub(crate) fn exact_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |(unit, _): &(u64, &str)| bytes >= *unit && bytes.is_multiple_of(*unit);
    match UNITS.into_iter().find(fits) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A size with three significant digits: `512 B`, `1.50 MiB`.
pub(crate) fn rounded_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A size in at most three digits: exact where that fits, otherwise rounded.
#[must_use]
pub fn short_size(bytes: u64) -> String {
    let exact = exact_size(bytes);
    match exact.split_once(' ') {
        Some((number, unit)) if number.len() <= 3 && unit != "B" => exact,
        _ => rounded_size(bytes),
    }
}

/// A number with the digits that matter: `0.43`, `7.21`, `55.4`.
pub(crate) fn rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() >= 1e6 => format!("{value:.1e}"),
        value if value.abs() < 9.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

/// A rate in a column of GB/s: one decimal, or more digits where that would leave none.
pub(crate) fn column_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if value < 0.000_95 => format!("{value:.1e}"),
        value if value < 0.095 => format!("{value:.3}"),
        value => format!("{value:.1}"),
    }
}

/// A rate with a fitting unit: `55.4 GB/s`, `7.21 MB/s`.
pub(crate) fn byte_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if value == 0.0 || value >= 0.0995 || !value.is_finite() => {
            format!("{} GB/s", rate(value))
        }
        value if value >= 0.0000995 => format!("{} MB/s", rate(value * 1e3)),
        value => format!("{} KB/s", rate(value * 1e6)),
    }
}

/// A time with three significant digits: `850 ns`, `12.3 µs`, `1.00 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    // A value that would round to 1000 takes the next unit.
    let (unit_ns, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..999_500 => (1e3, "µs"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(ns as f64 / unit_ns))
}

/// `1.25x`; empty without a speed-up.
pub(crate) fn speedup_label(speedup: Option<f64>) -> String {
    speedup.map_or_else(String::new, |speedup| match speedup < 1e6 {
        true => format!("{speedup:.2}x"),
        false => format!("{speedup:.1e}x"),
    })
}

/// `1.29×`, with fewer digits for large factors; empty if it is not finite.
pub(crate) fn factor_label(factor: f64) -> String {
    match factor.is_finite() {
        true => format!("{}×", rate(factor)),
        false => String::new(),
    }
}

/// A share of 1 as a percentage: `87%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A count with its noun: `1 batch`, `2 samples`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (_, "batch") => format!("{count} batches"),
        (_, "copy") => format!("{count} copies"),
        (_, "process") => format!("{count} processes"),
        (_, noun) => format!("{count} {noun}s"),
    }
}

pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!(
            [6.0, 5.96, 55.44, 10.0, 0.04, 0.05, 100.26].map(one_decimal),
            ["6", "6", "55.4", "10", "0", "0.1", "100.3"]
        );
        assert_eq!(
            [55.44, 0.38, 0.0994, 0.000_764, 0.000_000_5, 0.0].map(byte_rate),
            [
                "55.4 GB/s",
                "0.38 GB/s",
                "99.4 MB/s",
                "0.76 MB/s",
                "0.50 KB/s",
                "0.00 GB/s"
            ]
        );
        assert_eq!(
            [0, 999, 1_000, 9_996, 24_512_345, 999_600, 61_000_000_000].map(duration),
            [
                "0 ns", "999 ns", "1.00 µs", "10.0 µs", "24.5 ms", "1.00 ms", "61.0 s"
            ]
        );
    }

    #[test]
    fn sizes_are_exact_short_or_rounded() {
        assert_eq!(
            [256 << 20, 1 << 30, 3 << 19, 1000, 1].map(exact_size),
            ["256 MiB", "1 GiB", "1536 KiB", "1000 B", "1 B"]
        );
        assert_eq!(
            [96 << 20, 1 << 40, (1 << 30) + 1024, 26_188_850, 1000].map(short_size),
            ["96 MiB", "1.00 TiB", "1.00 GiB", "25.0 MiB", "1000 B"]
        );
        assert_eq!(
            [1023, 1 << 20, (1 << 20) - 1, 16 << 20, u64::MAX].map(rounded_size),
            ["1023 B", "1.00 MiB", "1.00 MiB", "16.0 MiB", "16.0 EiB"]
        );
    }
}
