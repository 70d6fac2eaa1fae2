//! Times and sizes as people read and write them.

/// Units by name, longest first where one ends like another.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Nanoseconds of `text`, such as `4ms`.
pub(super) fn duration(text: &str) -> Result<u64, String> {
    let wrong = || "not a time; write a number with ns, us, ms or s, such as 4ms".to_owned();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .ok_or_else(wrong)?;
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let ns = number * unit;
    if !(0.0..=3.6e12).contains(&ns) {
        return Err("a time from 0 to an hour is wanted".to_owned());
    }
    Ok(ns.round() as u64)
}

pub(super) fn show_duration(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.2} s", ns as f64 / 1e9),
        1_000_000.. => format!("{:.2} ms", ns as f64 / 1e6),
        1_000.. => format!("{:.1} us", ns as f64 / 1e3),
        _ => format!("{ns} ns"),
    }
}

pub(super) fn show_size(bytes: usize) -> String {
    match bytes {
        0x4000_0000.. => format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)),
        0x10_0000.. => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} KiB", bytes as f64 / 1024.0),
    }
}
