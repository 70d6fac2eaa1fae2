//! Medians, percentiles and rates of repeated copies.

use serde::{Deserialize, Serialize};

use crate::format::{duration, rate};

/// Statistics of copies of one kind, one size and one direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CopyStats {
    /// Number of copies.
    pub samples: u32,
    /// Median time.
    pub median_ns: u64,
    /// Shortest time.
    pub best_ns: u64,
    /// 5th percentile.
    pub p5_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 1e9 bytes a second, by the median.
    pub gb_per_s: f64,
}

impl CopyStats {
    /// Statistics of copies that move `bytes` each; `None` without samples, or if one took no time.
    #[must_use]
    pub fn from_times(bytes: u64, times_ns: &[u64]) -> Option<Self> {
        let mut sorted = times_ns.to_vec();
        sorted.sort_unstable();
        let best_ns = *sorted.first()?;
        let median_ns = percentile(&sorted, 50);
        // Bytes per nanosecond are GB/s.
        (best_ns > 0).then(|| Self {
            samples: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            median_ns,
            best_ns,
            p5_ns: percentile(&sorted, 5),
            p95_ns: percentile(&sorted, 95),
            gb_per_s: bytes as f64 / median_ns as f64,
        })
    }

    /// One copy: median and percentiles are its time.
    pub(crate) fn is_single(&self) -> bool {
        self.samples == 1
    }

    /// 5th to 95th percentile, in percent of the median.
    pub(crate) fn spread_percent(&self) -> f64 {
        let spread_ns = self.p95_ns.saturating_sub(self.p5_ns);
        spread_ns as f64 / self.median_ns.max(1) as f64 * 100.0
    }

    /// Rates of the slow and of the fast copies, which move `moved` bytes each.
    pub(crate) fn rate_bounds(&self, moved: u64) -> (f64, f64) {
        let median = self.gb_per_s;
        let rate = |ns: u64| match ns {
            0 => median,
            ns => moved as f64 / ns as f64,
        };
        (rate(self.p95_ns).min(median), rate(self.p5_ns).max(median))
    }

    /// `54.9–55.5`; empty if both bounds look the same.
    pub(crate) fn rate_range(&self, moved: u64) -> String {
        let (low, high) = self.rate_bounds(moved);
        match (rate(low), rate(high)) {
            (low, high) if low == high => String::new(),
            (low, high) => format!("{low}–{high}"),
        }
    }

    /// `4.80 ms – 4.92 ms`, or one time if both bounds look the same.
    pub(crate) fn time_range(&self) -> String {
        match (duration(self.p5_ns), duration(self.p95_ns)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low} – {high}"),
        }
    }
}

/// Percentile of sorted values, interpolated between neighbours.
fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let steps = (sorted.len() - 1) as u64 * percent;
    let (index, part) = ((steps / 100) as usize, steps % 100);
    match sorted.get(index + 1) {
        Some(next) if part > 0 => {
            let offset = u128::from(next - sorted[index]) * u128::from(part) / 100;
            sorted[index] + offset as u64
        }
        _ => sorted[index],
    }
}

/// The middle item by `key`; of two middle items the larger one.
pub(crate) fn middle_by_key<T: Copy>(items: &mut [T], key: impl Fn(&T) -> u64) -> Option<T> {
    items.sort_by_key(key);
    items.get(items.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours() {
        let hundred: Vec<u64> = (0..=100).map(|i| 1000 + i).collect();
        let stats = CopyStats::from_times(1000, &hundred).expect("time passed");
        assert_eq!(
            (stats.best_ns, stats.p5_ns, stats.median_ns, stats.p95_ns),
            (1000, 1005, 1050, 1095)
        );
        let two = CopyStats::from_times(1000, &[30, 10]).expect("time passed");
        assert_eq!((two.p5_ns, two.median_ns, two.p95_ns), (11, 20, 29));
        let one = CopyStats::from_times(1000, &[500]).expect("time passed");
        assert_eq!((one.p5_ns, one.median_ns, one.p95_ns), (500, 500, 500));
        assert!((one.gb_per_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn no_samples_and_no_time_have_no_stats() {
        assert_eq!(CopyStats::from_times(1, &[]), None);
        assert_eq!(CopyStats::from_times(1, &[0, 5]), None);
    }
}
