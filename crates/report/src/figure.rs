//! What was measured, in the smallest piece.

use serde::{Deserialize, Serialize};

/// What kind of host memory a figure is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Ordinary memory, copied by the driver.
    Pageable,
    /// Memory that was allocated page-locked.
    Pinned,
    /// Ordinary memory that was page-locked in place.
    Registered,
    /// Page-locked memory that the CPU writes past its caches.
    WriteCombined,
    /// Page-locked memory that a kernel on the device reads and writes itself.
    Mapped,
    /// Ordinary memory, copied by the express lane.
    Express,
}

impl MemoryKind {
    /// In the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Pageable,
        Self::Pinned,
        Self::Registered,
        Self::WriteCombined,
        Self::Mapped,
        Self::Express,
    ];

    /// As tables and the command line have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::WriteCombined => "write-combined",
            Self::Mapped => "mapped",
            Self::Express => "express",
        }
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Host to device.
    H2d,
    /// Device to host.
    D2h,
    /// Both at once, as many bytes each way; rates count the bytes of both.
    Both,
}

impl Route {
    /// In the order of tables.
    pub const ALL: [Self; 3] = [Self::H2d, Self::D2h, Self::Both];

    /// As the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::H2d => "h2d",
            Self::D2h => "d2h",
            Self::Both => "both",
        }
    }

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::H2d => "host to device",
            Self::D2h => "device to host",
            Self::Both => "both ways",
        }
    }

    /// Bytes that move in a copy of `bytes`.
    #[must_use]
    pub fn moved(self, bytes: u64) -> u64 {
        match self {
            Self::Both => bytes.saturating_mul(2),
            _ => bytes,
        }
    }
}

/// Copies of one kind, of one size, in one direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// How many copies it is made of.
    pub samples: u32,
    /// The middle one of the copies' times.
    pub median_ns: u64,
    /// The shortest of them.
    pub best_ns: u64,
    /// One in twenty was shorter than this.
    pub p5_ns: u64,
    /// One in twenty took longer than this.
    pub p95_ns: u64,
    /// 1e9 bytes a second, by the median.
    pub gb_per_s: f64,
}

impl Figure {
    /// The figure of copies that move `bytes` each. `None` when there is none, or when no time
    /// passed.
    #[must_use]
    pub fn from_times(bytes: u64, times_ns: &[u64]) -> Option<Self> {
        let mut sorted = times_ns.to_vec();
        sorted.sort_unstable();
        let best_ns = *sorted.first()?;
        let median_ns = quantile(&sorted, 50);
        // Bytes a nanosecond are GB/s.
        (best_ns > 0).then(|| Self {
            samples: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            median_ns,
            best_ns,
            p5_ns: quantile(&sorted, 5),
            p95_ns: quantile(&sorted, 95),
            gb_per_s: bytes as f64 / median_ns as f64,
        })
    }
}

/// The value below which so many percent of the sorted ones lie, between neighbours by their
/// distance.
fn quantile(sorted: &[u64], percent: u64) -> u64 {
    let steps = (sorted.len() - 1) as u64 * percent;
    let (place, part) = ((steps / 100) as usize, steps % 100);
    match sorted.get(place + 1) {
        Some(next) if part > 0 => {
            let apart = u128::from(next - sorted[place]) * u128::from(part) / 100;
            sorted[place] + apart as u64
        }
        _ => sorted[place],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let hundred: Vec<u64> = (0..=100).map(|i| 1000 + i).collect();
        let figure = Figure::from_times(1000, &hundred).expect("time passed");
        assert_eq!(
            (
                figure.best_ns,
                figure.p5_ns,
                figure.median_ns,
                figure.p95_ns
            ),
            (1000, 1005, 1050, 1095)
        );
        let two = Figure::from_times(1000, &[30, 10]).expect("time passed");
        assert_eq!((two.p5_ns, two.median_ns, two.p95_ns), (11, 20, 29));
        let one = Figure::from_times(1000, &[500]).expect("time passed");
        assert_eq!((one.p5_ns, one.median_ns, one.p95_ns), (500, 500, 500));
        assert!((one.gb_per_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_and_no_time_are_no_figure() {
        assert_eq!(Figure::from_times(1, &[]), None);
        assert_eq!(Figure::from_times(1, &[0, 5]), None);
    }
}
