//! What a loader has done, and what it waited for.

use std::time::Instant;

/// What a loader has done so far, over all epochs, and how long each stage took.
///
/// The largest of the workers' times shows the bottleneck: [`held_back_ns`](Self::held_back_ns) the consumer
/// ([`consumer_wait_ns`](Self::consumer_wait_ns) is small), [`slot_wait_ns`](Self::slot_wait_ns) the link,
/// [`read_ns`](Self::read_ns) the dataset.
///
/// Times are those of the host's clock, also on a simulated device, except [`copy_ns`](Self::copy_ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches submitted to the device.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples left out.
    pub skipped: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Time the consumer waited for batches.
    pub consumer_wait_ns: u64,
    /// Time spent in the dataset, summed over workers.
    pub read_ns: u64,
    /// Time spent waiting for pinned memory that was being copied, summed over workers.
    pub slot_wait_ns: u64,
    /// Time spent waiting because enough batches were ready, summed over workers.
    pub held_back_ns: u64,
    /// Time of completed copies, by the device's clock.
    pub copy_ns: u64,
    /// Bytes of these copies.
    pub copy_bytes: u64,
}

pub(super) fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
