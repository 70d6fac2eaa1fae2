//! Rates and times as pictures say them.

use crate::Figure;
use crate::timeline::layout::words::duration;

/// GB/s with the digits that count: `0.43`, `7.21`, `55.4`.
pub(crate) fn rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() >= 1e6 => format!("{value:.1e}"),
        value if value.abs() < 9.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

/// Rates of copies that move `moved` bytes: of the slow ones, and of the fast ones.
pub(crate) fn spread(moved: u64, figure: &Figure) -> (f64, f64) {
    let rate = |ns: u64, otherwise: f64| match ns {
        0 => otherwise,
        ns => moved as f64 / ns as f64,
    };
    let middle = figure.gb_per_s;
    let (low, high) = (rate(figure.p95_ns, middle), rate(figure.p5_ns, middle));
    (low.min(middle), high.max(middle))
}

/// `54.9–55.5`, or nothing where all copies took the same time.
pub(crate) fn range(moved: u64, figure: &Figure) -> String {
    let (low, high) = spread(moved, figure);
    let (low, high) = (rate(low), rate(high));
    match low == high {
        true => String::new(),
        false => format!("{low}–{high}"),
    }
}

/// `1.29×`, with fewer digits where it is large.
pub(crate) fn factor(times: f64) -> String {
    match times {
        value if !value.is_finite() => String::new(),
        value if value < 9.995 => format!("{value:.2}×"),
        value if value < 1e6 => format!("{value:.1}×"),
        value => format!("{value:.1e}×"),
    }
}

/// What one copy took: the median, and how far from it most copies were.
pub(crate) fn time_range(figure: &Figure) -> String {
    let (low, high) = (duration(figure.p5_ns), duration(figure.p95_ns));
    match low == high {
        true => low,
        false => format!("{low} – {high}"),
    }
}
