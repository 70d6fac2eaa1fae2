//! Copies that end: their slots come back, their errors are told.

use std::time::{Duration, Instant};

use super::depot::{Depot, Failed, GLANCE};
use super::slot::{Flying, Slot};

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

    /// The copy is done, as far as the wait for it can tell: the slot is free again.
    pub(super) fn land(
        &self,
        flying: Flying,
        waited: crate::Result<()>,
    ) -> Result<Option<Slot>, Failed> {
        let (batch, bytes, stale) = (Some(flying.batch), flying.bytes, flying.stale);
        let (slot, result) = take_back(flying);
        if let Err(error) = waited.and(result) {
            if stale {
                self.keep_stray(error);
                return Ok(slot);
            }
            self.store().idle.extend(slot);
            return Err(Failed { batch, error });
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
                // The first is told here.
                Err(failed) if outcome.is_ok() => outcome = Err(failed),
                Err(failed) => self.keep_stray(failed.error),
            }
        }
    }
}

/// The slot, and how its copy ended. None when nobody can tell whether the device has let go of it.
fn take_back(flying: Flying) -> (Option<Slot>, crate::Result<()>) {
    let gear = flying.gear;
    let (part, result) = match flying.transfer.wait() {
        Ok(part) => (Some(part), Ok(())),
        Err(failed) => (failed.buffer, Err(failed.error)),
    };
    let slot = part.map(|part| Slot {
        buffer: part.into_whole(),
        gear,
    });
    (slot, result)
}
