//! Pinned and device memory of batches, reused from batch to batch and from epoch to epoch.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pinlane_core::internal::exact_pool;
use pinlane_core::internal::{keep_stray_error, lock};
use pinlane_core::{
    Device, DeviceBuf, Error, Part, PinnedPool, PoolBuf, Stopwatch, Stream, Transfer,
};

use super::stats::{Counters, elapsed_ns};

/// How often a waiting thread checks whether to stop.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a dropped loader waits for its copies. The device frees the memory of longer ones when they are
/// done.
const DROP_PATIENCE: Duration = Duration::from_millis(100);

/// Pinned slots and device memory that are idle, or whose copy is in flight.
pub(super) struct BatchBuffers {
    device: Device,
    /// The stream of all copies.
    pub(super) stream: Stream,
    sizes: BatchBufferSizes,
    pub(super) counters: Arc<Counters>,
    /// Every existing slot holds a clone, wherever it is.
    alive: Arc<()>,
    pinned_pool: PinnedPool,
    pub(super) lists: Mutex<BufferLists>,
    /// A slot became idle, or its copy was submitted.
    changed: Condvar,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BatchBufferSizes {
    pub(super) slot_bytes: usize,
    pub(super) transformed_bytes: usize,
    /// The most slots.
    pub(super) slots: usize,
    /// The most idle device batches to keep.
    pub(super) device_batches: usize,
}

#[derive(Default)]
pub(super) struct BufferLists {
    pub(super) slots: Vec<BatchSlot>,
    /// In submission order.
    pub(super) in_flight: VecDeque<CopyInFlight>,
    device_batches: VecDeque<DeviceBatch>,
    /// Pinning failed: the slots that exist have to do.
    pinning_failed: bool,
}

/// Pinned memory of one batch.
pub(super) type BatchSlot = (PoolBuf<u8>, SlotTimer);

/// What stays with a slot while its memory is elsewhere.
pub(super) struct SlotTimer {
    /// Times its copies.
    pub(super) stopwatch: Stopwatch,
    _alive: Arc<()>,
}

/// A slot whose copy is in flight.
pub(super) struct CopyInFlight {
    pub(super) transfer: Transfer<Part<PoolBuf<u8>>>,
    pub(super) timer: SlotTimer,
    pub(super) batch: u64,
    pub(super) bytes: u64,
    /// It belongs to an earlier epoch, which no longer reports its errors.
    pub(super) stale: bool,
}

/// Device memory of one batch.
#[derive(Debug)]
pub(super) struct DeviceBatch {
    /// The fields as they were read.
    pub(super) raw: DeviceBuf<u8>,
    /// Fields after their device transform.
    pub(super) transformed: DeviceBuf<u8>,
}

/// A failed copy of a batch.
pub(super) struct CopyFailure {
    /// The batch, if it is not the current one.
    pub(super) batch: Option<u64>,
    /// The batch is not on the device, or its state is unknown.
    pub(super) lost: bool,
    pub(super) error: Error,
}

impl CopyFailure {
    /// Whether to report this one rather than the other.
    pub(super) fn comes_before(&self, other: &Self) -> bool {
        (!self.lost, self.batch) < (!other.lost, other.batch)
    }
}

impl From<Error> for CopyFailure {
    fn from(error: Error) -> Self {
        Self {
            batch: None,
            lost: false,
            error,
        }
    }
}

impl BatchBuffers {
    /// All copies go onto `stream`.
    pub(super) fn new(
        device: &Device,
        stream: Stream,
        sizes: BatchBufferSizes,
        counters: &Arc<Counters>,
    ) -> Self {
        Self {
            stream,
            device: device.clone(),
            sizes,
            counters: Arc::clone(counters),
            alive: Arc::default(),
            pinned_pool: exact_pool(device),
            lists: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// An epoch starts: try again to pin more, and stop reporting copies of the last epoch.
    pub(super) fn start_epoch(&self) {
        let mut idle = lock(&self.lists);
        idle.pinning_failed = false;
        idle.in_flight.iter_mut().for_each(|copy| copy.stale = true);
    }

    /// An idle slot. Waits for one; `None` if `stopped` returns true. Only one thread calls this at a time.
    pub(super) fn slot(
        &self,
        stopped: impl Fn() -> bool,
    ) -> Result<Option<BatchSlot>, CopyFailure> {
        loop {
            if let Some(slot) = self.idle_or_new()? {
                return Ok(Some(slot));
            }
            let mut idle = lock(&self.lists);
            let start = Instant::now();
            let mut completed = Ok(None);
            if let Some(copy) = idle.in_flight.pop_front() {
                drop(idle);
                completed = self.wait_for_copy(copy, &stopped);
            } else if idle.slots.is_empty() {
                // Other threads are filling all of them.
                drop(self.changed.wait_timeout(idle, POLL_INTERVAL));
            } else {
                drop(idle);
            }
            self.counters
                .update(|stats| stats.slot_wait_ns += elapsed_ns(start));
            if let Some(slot) = completed? {
                return Ok(Some(slot));
            }
            if stopped() {
                return Ok(None);
            }
        }
    }

    /// An idle slot, without waiting. Only one thread calls this at a time.
    pub(super) fn try_slot(&self) -> Result<Option<BatchSlot>, CopyFailure> {
        if let Some(slot) = self.idle_or_new()? {
            return Ok(Some(slot));
        }
        let oldest = lock(&self.lists).in_flight.pop_front();
        let Some(copy) = oldest else {
            return Ok(None);
        };
        match copy.transfer.is_done() {
            Ok(false) => {
                lock(&self.lists).in_flight.push_front(copy);
                Ok(None)
            }
            Ok(true) => self.complete(copy, Ok(())),
            Err(error) => self.complete(copy, Err(error)),
        }
    }

    fn idle_or_new(&self) -> Result<Option<BatchSlot>, CopyFailure> {
        let mut idle = lock(&self.lists);
        if let Some(slot) = idle.slots.pop() {
            return Ok(Some(slot));
        }
        // Without any slot, none will come back: then try again, and report the error.
        let alive = self.slots_alive();
        if alive >= self.sizes.slots || (idle.pinning_failed && alive > 0) {
            return Ok(None);
        }
        drop(idle);
        match self.new_slot() {
            Ok(slot) => Ok(Some(slot)),
            Err(error) if self.slots_alive() == 0 || is_fatal(&error) => Err(error.into()),
            Err(error) => {
                self.keep_stray(error);
                lock(&self.lists).pinning_failed = true;
                Ok(None)
            }
        }
    }

    fn new_slot(&self) -> pinlane_core::Result<BatchSlot> {
        let buffer = self.pinned_pool.take(self.sizes.slot_bytes)?;
        let timer = SlotTimer {
            stopwatch: self.device.stopwatch()?,
            _alive: Arc::clone(&self.alive),
        };
        Ok((buffer, timer))
    }

    fn slots_alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }

    /// Return a slot that was not submitted.
    pub(super) fn return_slot(&self, slot: BatchSlot) {
        lock(&self.lists).slots.push(slot);
        self.wake();
    }

    /// Add a slot whose copy was submitted.
    pub(super) fn add_copy(&self, copy: CopyInFlight) {
        lock(&self.lists).in_flight.push_back(copy);
        self.wake();
    }

    /// Wake a waiting thread, to check whether to stop.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Device memory for one batch.
    pub(super) fn device_batch(&self) -> pinlane_core::Result<DeviceBatch> {
        let idle = lock(&self.lists).device_batches.pop_front();
        match idle {
            Some(batch) => Ok(batch),
            None => Ok(DeviceBatch {
                raw: self.stream.alloc(self.sizes.slot_bytes)?,
                transformed: self.stream.alloc(self.sizes.transformed_bytes)?,
            }),
        }
    }

    /// Return the device memory of a batch. Work on it may be in flight: the next copy into it waits for that.
    pub(super) fn return_device_batch(&self, batch: DeviceBatch) {
        let sound = !batch.raw.is_stranded() && !batch.transformed.is_stranded();
        let mut idle = lock(&self.lists);
        if sound && idle.device_batches.len() < self.sizes.device_batches {
            idle.device_batches.push_back(batch);
        } else {
            drop(idle); // call the driver without the lock
            drop(batch);
        }
    }

    /// Keep an error that no call can return.
    pub(super) fn keep_stray(&self, error: Error) {
        keep_stray_error(&self.device, error);
    }
}

impl Drop for BatchBuffers {
    fn drop(&mut self) {
        if let Err(failure) = self.wait_for_all(DROP_PATIENCE) {
            self.keep_stray(failure.error);
        }
    }
}

pub(super) fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}
