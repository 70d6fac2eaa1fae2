//! Memory of one batch, on the host and on the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinlane_core::{Device, DeviceBuf, Part, PinnedPool, PoolBuf, Result, Stopwatch, Transfer};

/// Page-locked memory of one batch.
pub(super) struct Slot {
    pub(super) buffer: PoolBuf<u8>,
    pub(super) gear: Gear,
}

/// What belongs to a slot, wherever its memory is.
pub(super) struct Gear {
    /// Takes the time of its copies.
    pub(super) stopwatch: Stopwatch,
    /// Counts it for as long as it lives.
    _tally: Tally,
}

/// A slot whose copy is under way.
pub(super) struct Flying {
    pub(super) transfer: Transfer<Part<PoolBuf<u8>>>,
    pub(super) gear: Gear,
    /// Which batch it is, and of how many bytes.
    pub(super) batch: u64,
    pub(super) bytes: u64,
    /// It is of an epoch that is over, where nobody asks for it any more.
    pub(super) stale: bool,
}

impl Slot {
    pub(super) fn new(
        device: &Device,
        pool: &PinnedPool,
        bytes: usize,
        made: &Arc<AtomicUsize>,
    ) -> Result<Self> {
        Ok(Self {
            buffer: pool.take(bytes)?,
            gear: Gear {
                stopwatch: device.stopwatch()?,
                _tally: Tally::new(made),
            },
        })
    }
}

/// One in a count.
struct Tally(Arc<AtomicUsize>);

impl Tally {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Device memory of one batch.
#[derive(Debug)]
pub(super) struct Berth {
    /// The fields as they were read.
    pub(super) raw: DeviceBuf<u8>,
    /// What the device made of some of them.
    pub(super) finished: DeviceBuf<u8>,
}

impl Berth {
    /// Whether it may be used again.
    pub(super) fn is_sound(&self) -> bool {
        !self.raw.is_stranded() && !self.finished.is_stranded()
    }
}
