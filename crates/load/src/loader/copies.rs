//! Completing copies: their slots become idle again, and their errors are reported.

use std::time::{Duration, Instant};

use pinlane_core::internal::lock;

use super::buffers::{BatchBuffers, BatchSlot, CopyFailure, CopyInFlight, POLL_INTERVAL, is_fatal};

impl BatchBuffers {
    /// Wait for a copy and return its slot. `None` if `stopped` returns true first, with the copy back in
    /// the list, or if the slot is lost.
    pub(super) fn wait_for_copy(
        &self,
        copy: CopyInFlight,
        stopped: &impl Fn() -> bool,
    ) -> Result<Option<BatchSlot>, CopyFailure> {
        loop {
            match copy.transfer.wait_timeout(POLL_INTERVAL) {
                Ok(false) if stopped() => {
                    lock(&self.lists).in_flight.push_front(copy);
                    return Ok(None);
                }
                Ok(false) => {}
                Ok(true) => return self.complete(copy, Ok(())),
                Err(error) => return self.complete(copy, Err(error)),
            }
        }
    }

    /// Take the slot of a copy that is done, as far as waiting for it could tell. If neither the failed wait
    /// nor another look can tell, the copy is left to the device, which frees the memory when it is done:
    /// waiting longer might take forever.
    pub(super) fn complete(
        &self,
        copy: CopyInFlight,
        waited: pinlane_core::Result<()>,
    ) -> Result<Option<BatchSlot>, CopyFailure> {
        let CopyInFlight {
            transfer,
            timer,
            batch,
            bytes,
            stale,
        } = copy;
        let done = match &waited {
            Ok(()) => true,
            Err(error) => {
                is_fatal(error) || matches!(transfer.wait_timeout(POLL_INTERVAL), Ok(true))
            }
        };
        // No buffer comes back if the device may still use it.
        let (part, copied) = match done.then(|| transfer.wait()) {
            Some(Ok(part)) => (Some(part), Ok(())),
            Some(Err(failed)) => (failed.buffer, Err(failed.error)),
            None => (None, Ok(())),
        };
        let slot = part.map(|part| (part.into_whole(), timer));
        let lost = !done || copied.is_err();
        if let Err(error) = waited.and(copied) {
            if stale {
                self.keep_stray(error);
                return Ok(slot);
            }
            lock(&self.lists).slots.extend(slot);
            return Err(CopyFailure {
                batch: Some(batch),
                lost,
                error,
            });
        }
        if let Some((_, timer)) = &slot {
            match timer.stopwatch.elapsed_ns() {
                Ok(ns) => self.counters.update(|stats| {
                    stats.copy_ns += ns;
                    stats.copy_bytes += bytes;
                }),
                // Only a statistic is missing.
                Err(error) => self.keep_stray(error),
            }
        }
        Ok(slot)
    }

    /// Wait for all copies, at most for `patience`; the rest stays in the list. Of several failures, returns
    /// that of the first lost batch: threads submit batches in any order.
    pub(super) fn wait_for_all(&self, patience: Duration) -> Result<(), CopyFailure> {
        let end = Instant::now() + patience;
        let stopped = || Instant::now() >= end;
        let mut outcome = Ok(());
        loop {
            let oldest = lock(&self.lists).in_flight.pop_front();
            let Some(copy) = oldest else {
                return outcome;
            };
            match self.wait_for_copy(copy, &stopped) {
                Ok(Some(slot)) => self.return_slot(slot),
                Ok(None) if stopped() => return outcome,
                Ok(None) => {}
                Err(failure) => {
                    let (reported, other) = match outcome {
                        Ok(()) => (failure, None),
                        Err(other) if failure.comes_before(&other) => (failure, Some(other)),
                        Err(other) => (other, Some(failure)),
                    };
                    outcome = Err(reported);
                    if let Some(other) = other {
                        self.keep_stray(other.error);
                    }
                }
            }
        }
    }
}
