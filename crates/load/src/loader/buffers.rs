//! Pinned and device memory of batches, reused from batch to batch, and the copies between them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pinlane_core::internal::{keep_stray_error, lock};
use pinlane_core::{
    Device, DeviceBuf, Error, Part, PinnedPool, PoolBuf, Stopwatch, Stream, Transfer,
};

use super::{LoaderStats, elapsed_ns};

/// How often a waiting thread checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a dropped loader waits for its copies. The device frees the memory of longer ones at their end.
const DROP_PATIENCE: Duration = Duration::from_millis(100);

/// Pinned slots and device memory that are idle, or whose copy is in flight.
pub(super) struct BatchBuffers {
    pub(super) device: Device,
    /// The stream of all copies.
    pub(super) stream: Stream,
    pub(super) slot_bytes: usize,
    pub(super) transformed_bytes: usize,
    pub(super) slots_max: usize,
    /// The most idle device batches to keep.
    pub(super) device_batches_max: usize,
    pub(super) stats: Mutex<LoaderStats>,
    /// Every existing slot holds a clone, wherever it is.
    pub(super) alive: Arc<()>,
    pub(super) pinned_pool: PinnedPool,
    pub(super) lists: Mutex<BufferLists>,
    /// A slot became idle, or its copy was submitted.
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct BufferLists {
    slots: Vec<BatchSlot>,
    /// In submission order.
    in_flight: VecDeque<CopyInFlight>,
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

pub(super) struct CopyInFlight {
    pub(super) transfer: Transfer<Part<PoolBuf<u8>>>,
    pub(super) timer: SlotTimer,
    pub(super) batch: u64,
    pub(super) bytes: u64,
    /// It belongs to an earlier epoch, which no longer reports its errors.
    pub(super) stale: bool,
}

pub(super) struct DeviceBatch {
    /// The fields as they were read.
    pub(super) raw: DeviceBuf<u8>,
    /// Fields after their device transform.
    pub(super) transformed: DeviceBuf<u8>,
}

pub(super) struct CopyFailure {
    /// The batch, if it is not the current one.
    pub(super) batch: Option<u64>,
    /// The batch is not on the device, or its state is unknown.
    pub(super) lost: bool,
    pub(super) error: Error,
}

type SlotResult = Result<Option<BatchSlot>, CopyFailure>;

impl From<Error> for CopyFailure {
    fn from(error: Error) -> Self {
        let (batch, lost) = (None, false);
        Self { batch, lost, error }
    }
}

impl BatchBuffers {
    /// An epoch starts: try again to pin more, and stop reporting copies of the last epoch.
    pub(super) fn start_epoch(&self) {
        let mut lists = lock(&self.lists);
        lists.pinning_failed = false;
        for copy in &mut lists.in_flight {
            copy.stale = true;
        }
    }

    /// An idle slot. Waits for one; `None` if `stopped` returns true. Only one thread calls this at a time.
    pub(super) fn slot(&self, stopped: impl Fn() -> bool) -> SlotResult {
        loop {
            if let Some(slot) = self.idle_or_new()? {
                return Ok(Some(slot));
            }
            let start = Instant::now();
            let mut lists = lock(&self.lists);
            let mut completed = Ok(None);
            if let Some(copy) = lists.in_flight.pop_front() {
                drop(lists);
                completed = self.wait_for_copy(copy, &stopped);
            } else if lists.slots.is_empty() {
                // Other threads are filling all of them.
                drop(self.changed.wait_timeout(lists, POLL_INTERVAL));
            } else {
                drop(lists);
            }
            lock(&self.stats).slot_wait_ns += elapsed_ns(start);
            match completed? {
                None if !stopped() => {}
                slot => return Ok(slot),
            }
        }
    }

    /// An idle slot, without waiting. Only one thread calls this at a time.
    pub(super) fn try_slot(&self) -> SlotResult {
        if let Some(slot) = self.idle_or_new()? {
            return Ok(Some(slot));
        }
        let Some(copy) = self.take_oldest_copy() else {
            return Ok(None);
        };
        match copy.transfer.is_done() {
            Ok(false) => {
                lock(&self.lists).in_flight.push_front(copy);
                Ok(None)
            }
            waited => self.complete(copy, waited),
        }
    }

    fn idle_or_new(&self) -> SlotResult {
        let mut lists = lock(&self.lists);
        if let Some(slot) = lists.slots.pop() {
            return Ok(Some(slot));
        }
        // Without any slot, none will come back: then try again, and report the error.
        let alive = || Arc::strong_count(&self.alive) - 1;
        if alive() >= self.slots_max || (lists.pinning_failed && alive() > 0) {
            return Ok(None);
        }
        drop(lists);
        match self.new_slot() {
            Ok(slot) => Ok(Some(slot)),
            Err(error) if alive() == 0 || is_fatal(&error) => Err(error.into()),
            Err(error) => {
                self.keep_stray(error);
                lock(&self.lists).pinning_failed = true;
                Ok(None)
            }
        }
    }

    fn new_slot(&self) -> pinlane_core::Result<BatchSlot> {
        let buffer = self.pinned_pool.take(self.slot_bytes)?;
        let timer = SlotTimer {
            stopwatch: self.device.stopwatch()?,
            _alive: Arc::clone(&self.alive),
        };
        Ok((buffer, timer))
    }

    fn take_oldest_copy(&self) -> Option<CopyInFlight> {
        lock(&self.lists).in_flight.pop_front()
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

    pub(super) fn device_batch(&self) -> pinlane_core::Result<DeviceBatch> {
        if let Some(batch) = lock(&self.lists).device_batches.pop_front() {
            return Ok(batch);
        }
        Ok(DeviceBatch {
            raw: self.stream.alloc(self.slot_bytes)?,
            transformed: self.stream.alloc(self.transformed_bytes)?,
        })
    }

    /// Return the device memory of a batch. The next copy into it waits for work in flight.
    pub(super) fn return_device_batch(&self, batch: DeviceBatch) {
        let sound = !batch.raw.is_stranded() && !batch.transformed.is_stranded();
        let mut lists = lock(&self.lists);
        if sound && lists.device_batches.len() < self.device_batches_max {
            lists.device_batches.push_back(batch);
        } else {
            drop(lists); // call the driver without the lock
            drop(batch);
        }
    }

    /// Wait for a copy. `None` if stopped first, with the copy back in the list, or if the slot is lost.
    fn wait_for_copy(&self, copy: CopyInFlight, stopped: &impl Fn() -> bool) -> SlotResult {
        loop {
            match copy.transfer.wait_timeout(POLL_INTERVAL) {
                Ok(false) if stopped() => {
                    lock(&self.lists).in_flight.push_front(copy);
                    return Ok(None);
                }
                Ok(false) => {}
                waited => return self.complete(copy, waited),
            }
        }
    }

    /// Take the slot of a copy that is done, or for which waiting failed. If another look cannot tell whether
    /// it is done, leave it to the device, which frees the memory later: waiting might take forever.
    fn complete(&self, copy: CopyInFlight, waited: pinlane_core::Result<bool>) -> SlotResult {
        let (transfer, timer) = (copy.transfer, copy.timer);
        let done = waited.as_ref().err().is_none_or(|error| {
            is_fatal(error) || matches!(transfer.wait_timeout(POLL_INTERVAL), Ok(true))
        });
        // No buffer comes back if the device may still use it.
        let (part, copied) = match done.then(|| transfer.wait()) {
            Some(Ok(part)) => (Some(part), Ok(())),
            Some(Err(failed)) => (failed.buffer, Err(failed.error)),
            None => (None, Ok(())),
        };
        let slot = part.map(|part| (part.into_whole(), timer));
        let lost = !done || copied.is_err();
        if let Err(error) = waited.and(copied) {
            if copy.stale {
                self.keep_stray(error);
                return Ok(slot);
            }
            lock(&self.lists).slots.extend(slot);
            let batch = Some(copy.batch);
            return Err(CopyFailure { batch, lost, error });
        }
        if let Some((_, timer)) = &slot {
            match timer.stopwatch.elapsed_ns() {
                Ok(ns) => {
                    let mut stats = lock(&self.stats);
                    stats.copy_ns += ns;
                    stats.copy_bytes += copy.bytes;
                }
                // Only a statistic is missing.
                Err(error) => self.keep_stray(error),
            }
        }
        Ok(slot)
    }

    /// Wait for all copies, at most for `patience`; the rest stays in the list. Of several failures, returns
    /// that of the first lost batch: threads submit batches in any order.
    pub(super) fn wait_for_all(&self, patience: Duration) -> Option<CopyFailure> {
        let end = Instant::now() + patience;
        let stopped = || Instant::now() >= end;
        let mut failures = Vec::new();
        while let Some(copy) = self.take_oldest_copy() {
            match self.wait_for_copy(copy, &stopped) {
                Ok(Some(slot)) => self.return_slot(slot),
                Ok(None) if stopped() => break,
                Ok(None) => {}
                Err(failure) => failures.push(failure),
            }
        }
        failures.sort_by_key(|failure| (!failure.lost, failure.batch));
        let mut failures = failures.into_iter();
        let first = failures.next();
        failures.for_each(|failure| self.keep_stray(failure.error));
        first
    }

    /// Keep an error that no call can return.
    pub(super) fn keep_stray(&self, error: Error) {
        keep_stray_error(&self.device, error);
    }
}

impl Drop for BatchBuffers {
    fn drop(&mut self) {
        if let Some(failure) = self.wait_for_all(DROP_PATIENCE) {
            self.keep_stray(failure.error);
        }
    }
}

fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}
