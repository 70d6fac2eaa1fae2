//! Copies that end: their slots come back, their errors are told.

use std::time::{Duration, Instant};

use pinlane_core::{Part, PoolBuf, Transfer};

use super::depot::{Depot, Failed, GLANCE, is_fatal};
use super::slot::{Flying, Gear, Slot};

impl Depot {
    /// Wait until the copy is done. `None` when it is not, and is in the store again, or when its slot
    /// is lost.
    pub(super) fn await_landing(
        &self,
        flying: Flying,
        stopped: &impl Fn() -> bool,
    ) -> Result<Option<Slot>, Failed> {
        loop {
            match flying.transfer.wait_timeout(GLANCE) {
                Ok(false) if stopped() => {
                    self.store().flying.push_front(flying);
                    return Ok(None);
                }
                Ok(false) => {}
                Ok(true) => return self.land(flying, Ok(())),
                // Whether the copy itself failed does not matter then.
                Err(error) => return self.land(flying, Err(error)),
            }
        }
    }

    /// The copy is done, as far as the wait for it can tell: the slot is free again. Where a failed wait
    /// tells nothing and another look neither, the copy is left to the device, which frees the memory
    /// when it is done: to wait on might take for ever.
    pub(super) fn land(
        &self,
        flying: Flying,
        waited: pinlane_core::Result<()>,
    ) -> Result<Option<Slot>, Failed> {
        let Flying {
            transfer,
            gear,
            batch,
            bytes,
            stale,
        } = flying;
        let done = match &waited {
            Ok(()) => true,
            Err(error) => is_fatal(error) || matches!(transfer.wait_timeout(GLANCE), Ok(true)),
        };
        let (slot, copied) = match done {
            true => take_back(transfer, gear),
            false => (None, Ok(())),
        };
        let lost = !done || copied.is_err();
        if let Err(error) = waited.and(copied) {
            if stale {
                self.keep_stray(error);
                return Ok(slot);
            }
            self.store().idle.extend(slot);
            return Err(Failed {
                batch: Some(batch),
                lost,
                error,
            });
        }
        if let Some(slot) = &slot {
            match slot.gear.stopwatch.elapsed_ns() {
                Ok(ns) => {
                    self.counters.copy_ns.add(ns);
                    self.counters.copy_bytes.add(bytes);
                }
                // Only a figure is missing.
                Err(error) => self.keep_stray(error),
            }
        }
        Ok(slot)
    }

    /// Wait until all copies are done, as long as `patience` lasts. Those that are not stay in the store.
    /// Of several failures, the one of the first batch that is lost: threads submit them in any order.
    pub(super) fn settle(&self, patience: Duration) -> Result<(), Failed> {
        let end = Instant::now() + patience;
        let stopped = || Instant::now() >= end;
        let mut outcome = Ok(());
        loop {
            let flying = self.store().flying.pop_front();
            let Some(flying) = flying else {
                return outcome;
            };
            match self.await_landing(flying, &stopped) {
                Ok(Some(slot)) => self.put(slot),
                Ok(None) if stopped() => return outcome,
                Ok(None) => {}
                Err(failed) => {
                    let (told, other) = match outcome {
                        Ok(()) => (failed, None),
                        Err(other) if failed.comes_before(&other) => (failed, Some(other)),
                        Err(other) => (other, Some(failed)),
                    };
                    outcome = Err(told);
                    if let Some(other) = other {
                        self.keep_stray(other.error);
                    }
                }
            }
        }
    }
}

/// The slot of a copy that is done, and how it ended. None when nobody can tell whether the device has
/// let go of it.
fn take_back(
    transfer: Transfer<Part<PoolBuf<u8>>>,
    gear: Gear,
) -> (Option<Slot>, pinlane_core::Result<()>) {
    let (part, result) = match transfer.wait() {
        Ok(part) => (Some(part), Ok(())),
        Err(failed) => (failed.buffer, Err(failed.error)),
    };
    let slot = part.map(|part| Slot {
        buffer: part.into_whole(),
        gear,
    });
    (slot, result)
}
