//! Sizes, rates, times and counts.

/// One decimal, with a trailing `.0` dropped: `6`, `55.4`.
pub(crate) fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
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
pub(crate) fn duration(ns: u64) -> String {
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
    let plural = match (count, noun) {
        (1, _) => "",
        (_, "batch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{plural}")
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
    fn exact_sizes_take_the_largest_unit_that_divides() {
        for (bytes, text) in [
            (256 << 20, "256 MiB"),
            (1 << 30, "1 GiB"),
            (3 << 19, "1536 KiB"),
            (1000, "1000 B"),
            (1, "1 B"),
        ] {
            assert_eq!(exact_size(bytes), text);
        }
    }

    #[test]
    fn rates_take_a_fitting_unit() {
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
    fn short_sizes_have_few_digits() {
        for (bytes, text) in [
            (96 << 20, "96 MiB"),
            (1 << 40, "1.00 TiB"),
            ((1 << 30) + 1024, "1.00 GiB"),
            (26_188_850, "25.0 MiB"),
            (1000, "1000 B"),
        ] {
            assert_eq!(short_size(bytes), text);
        }
    }

    #[test]
    fn durations_keep_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_996, "10.0 µs"),
            (24_512_345, "24.5 ms"),
            (999_600, "1.00 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn rounded_sizes_keep_three_digits() {
        for (bytes, text) in [
            (1023, "1023 B"),
            (1 << 20, "1.00 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (16 << 20, "16.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(rounded_size(bytes), text);
        }
    }
}
