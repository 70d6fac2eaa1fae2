//! `bench`: a sweep over sizes, kinds of memory and directions.

mod comparison;
mod csv;
mod html;
mod parse;
mod plots;
mod text;

pub use comparison::{BenchChange, BenchComparison, BenchVerdict};
pub use parse::BenchReadError;

use serde::{Deserialize, Serialize};

use crate::{CopyStats, MemoryKind, Origin, Route};

/// A kind of memory, direction and size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BenchPoint {
    /// Host memory.
    pub memory: MemoryKind,
    /// Direction.
    pub route: Route,
    /// Bytes of one copy, one way.
    pub bytes: u64,
}

/// Copies of one kind, direction and size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BenchLine {
    /// What was copied.
    #[serde(flatten)]
    pub point: BenchPoint,
    /// Times and rate.
    #[serde(flatten)]
    pub stats: CopyStats,
    /// Whether the times vary too much for a meaningful median.
    pub noisy: bool,
}

/// The smallest copy, which shows the fixed cost of a copy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BenchLatency {
    /// What was copied.
    #[serde(flatten)]
    pub point: BenchPoint,
    /// Times and rate.
    #[serde(flatten)]
    pub stats: CopyStats,
}

impl BenchPoint {
    fn new(memory: MemoryKind, route: Route, bytes: u64) -> Self {
        Self {
            memory,
            route,
            bytes,
        }
    }

    fn moved_bytes(&self) -> u64 {
        self.route.moved(self.bytes)
    }
}

/// A sweep over sizes, kinds of memory and directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bench {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Start time, such as `2026-11-15 10:20:35 UTC`. `None` on a simulated device, whose runs are all
    /// the same.
    pub began: Option<String>,
    /// Seed of the order of measurement.
    pub seed: u64,
    /// Time budget of each combination.
    pub budget_ns: u64,
    /// Whether everything was measured; false after an interruption.
    pub complete: bool,
    /// Ordered by kind, direction and size.
    pub lines: Vec<BenchLine>,
    /// Ordered by kind and direction.
    pub latencies: Vec<BenchLatency>,
    /// Notes for the reader: kinds that this device does not support, noise.
    pub notes: Vec<String>,
}

impl Bench {
    /// A sweep without lines.
    #[must_use]
    pub fn new(origin: Origin, began: Option<String>, seed: u64, budget_ns: u64) -> Self {
        Self {
            origin,
            began,
            seed,
            budget_ns,
            complete: false,
            lines: Vec::new(),
            latencies: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether the times vary too much: the 5th and 95th percentile differ by more than a quarter of
    /// the median.
    fn is_noisy(stats: &CopyStats) -> bool {
        stats.spread_percent() > 25.0
    }

    /// Adds a combination, in the order of `lines`.
    pub fn push(&mut self, memory: MemoryKind, route: Route, bytes: u64, stats: CopyStats) {
        let point = BenchPoint::new(memory, route, bytes);
        let at = self.lines.partition_point(|line| line.point <= point);
        let noisy = Self::is_noisy(&stats);
        let line = BenchLine {
            point,
            stats,
            noisy,
        };
        self.lines.insert(at, line);
    }

    /// Adds the smallest copy of a kind and direction, in the order of `latencies`.
    pub fn push_latency(&mut self, memory: MemoryKind, route: Route, bytes: u64, stats: CopyStats) {
        let point = BenchPoint::new(memory, route, bytes);
        let at = self
            .latencies
            .partition_point(|entry| (entry.point.memory, entry.point.route) <= (memory, route));
        self.latencies.insert(at, BenchLatency { point, stats });
    }

    /// Bandwidths, then latencies: list, combination, statistics, and whether they are noisy.
    fn figures(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&'static str, BenchPoint, CopyStats, bool)> {
        let lines = self.lines.iter();
        let lines = lines.map(|line| ("bandwidth", line.point, line.stats, line.noisy));
        let latencies = self.latencies.iter().map(|BenchLatency { point, stats }| {
            let noisy = Self::is_noisy(stats);
            ("latency", *point, *stats, noisy)
        });
        lines.chain(latencies)
    }

    fn routes(&self) -> Vec<Route> {
        let measured = |route: &Route| self.lines.iter().any(|line| line.point.route == *route);
        Route::ALL.into_iter().filter(measured).collect()
    }

    /// Kinds of memory measured in a direction.
    fn kinds(&self, route: Route) -> Vec<MemoryKind> {
        let lines = || self.lines.iter().filter(|line| line.point.route == route);
        let measured = |memory: &MemoryKind| lines().any(|line| line.point.memory == *memory);
        MemoryKind::ALL.into_iter().filter(measured).collect()
    }

    /// Sizes measured in a direction, in ascending order.
    fn sizes(&self, route: Route) -> Vec<u64> {
        let lines = self.lines.iter().filter(|line| line.point.route == route);
        let mut sizes: Vec<u64> = lines.map(|line| line.point.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn line(&self, route: Route, memory: MemoryKind, bytes: u64) -> Option<&BenchLine> {
        let point = BenchPoint::new(memory, route, bytes);
        self.lines.iter().find(|line| line.point == point)
    }

    /// The smallest copy of a kind and direction.
    fn latency(&self, memory: MemoryKind, route: Route) -> Option<&BenchLatency> {
        let mut latencies = self.latencies.iter();
        latencies.find(|entry| (entry.point.memory, entry.point.route) == (memory, route))
    }

    fn fastest(&self, route: Route) -> Option<&BenchLine> {
        let lines = self.lines.iter().filter(|line| line.point.route == route);
        lines.max_by(|a, b| a.stats.gb_per_s.total_cmp(&b.stats.gb_per_s))
    }

    fn noisy_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.noisy).count()
    }
}
