//! What a loader has done, and what it waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What a loader has done so far, over all epochs, and how long each stage took. Which one limits:
///
/// - The consumer, where [`held_back_ns`](Self::held_back_ns) is what workers spend their time with, and
///   [`consumer_wait_ns`](Self::consumer_wait_ns) stays small.
/// - The link, where it is [`slot_wait_ns`](Self::slot_wait_ns).
/// - The dataset, where it is [`read_ns`](Self::read_ns).
///
/// Times are of this machine's clock, but for [`copy_ns`](Self::copy_ns), on a simulated device, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches that were submitted to the device.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples that were left out.
    pub skipped: u64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Time that the consumer waited for a batch.
    pub consumer_wait_ns: u64,
    /// Time that workers spent in the dataset, all of them together.
    pub read_ns: u64,
    /// Time that workers waited for page-locked memory whose copy was under way, all of them together.
    pub slot_wait_ns: u64,
    /// Time that workers waited since enough batches were ready, all of them together.
    pub held_back_ns: u64,
    /// Time of copies that are known to be done, by the device's clock.
    pub copy_ns: u64,
    /// Bytes of these copies.
    pub copy_bytes: u64,
}

/// A sum that several threads add to.
#[derive(Debug, Default)]
pub(super) struct Sum(AtomicU64);

impl Sum {
    pub(super) fn add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    /// The time since then, in nanoseconds.
    pub(super) fn add_since(&self, start: Instant) {
        let ns = start.elapsed().as_nanos();
        self.add(u64::try_from(ns).unwrap_or(u64::MAX));
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// [`LoaderStats`] in the making.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches: Sum,
    pub(super) samples: Sum,
    pub(super) skipped: Sum,
    pub(super) bytes: Sum,
    pub(super) consumer_wait_ns: Sum,
    pub(super) read_ns: Sum,
    pub(super) slot_wait_ns: Sum,
    pub(super) held_back_ns: Sum,
    pub(super) copy_ns: Sum,
    pub(super) copy_bytes: Sum,
}

impl Counters {
    pub(super) fn stats(&self) -> LoaderStats {
        LoaderStats {
            batches: self.batches.value(),
            samples: self.samples.value(),
            skipped: self.skipped.value(),
            bytes: self.bytes.value(),
            consumer_wait_ns: self.consumer_wait_ns.value(),
            read_ns: self.read_ns.value(),
            slot_wait_ns: self.slot_wait_ns.value(),
            held_back_ns: self.held_back_ns.value(),
            copy_ns: self.copy_ns.value(),
            copy_bytes: self.copy_bytes.value(),
        }
    }
}
