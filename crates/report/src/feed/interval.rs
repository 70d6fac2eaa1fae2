//! A feed over time.

use serde::Serialize;

/// Batches that arrived one after the other. The first batch of a run is in none: what comes before it is
/// the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FeedInterval {
    /// When the batch before them had arrived, since the start of the run.
    pub start_ns: u64,
    /// When the last of them had arrived.
    pub end_ns: u64,
    /// Batches.
    pub batches: u64,
    /// Samples.
    pub samples: u64,
    /// Time that the consumer waited for them.
    pub wait_ns: u64,
    /// The longest wait for one of them.
    pub wait_max_ns: u64,
}

impl FeedInterval {
    /// Both intervals as one; `next` follows `self`.
    #[must_use]
    pub fn joined(self, next: Self) -> Self {
        Self {
            start_ns: self.start_ns,
            end_ns: next.end_ns,
            batches: self.batches + next.batches,
            samples: self.samples + next.samples,
            wait_ns: self.wait_ns.saturating_add(next.wait_ns),
            wait_max_ns: self.wait_max_ns.max(next.wait_max_ns),
        }
    }

    /// Samples a second; 0 if no time passed.
    pub(super) fn samples_per_s(&self) -> f64 {
        match self.end_ns.saturating_sub(self.start_ns) {
            0 => 0.0,
            ns => self.samples as f64 * 1e9 / ns as f64,
        }
    }

    /// Mean wait for a batch.
    pub(super) fn mean_wait_ns(&self) -> u64 {
        self.wait_ns / self.batches.max(1)
    }
}
