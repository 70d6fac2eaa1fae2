//! Pinned memory that pieces are read into.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Device, Error, PinnedBuf, Result};

/// Slots that no load uses, kept for the next one.
#[derive(Default, Debug)]
pub(crate) struct IdleSlots(Mutex<Vec<PinnedBuf<u8>>>);

impl IdleSlots {
    fn take(&self, bytes: usize) -> Option<PinnedBuf<u8>> {
        let mut idle = self.lock();
        let at = idle.iter().position(|slot| slot.len() == bytes)?;
        Some(idle.swap_remove(at))
    }

    pub(super) fn put(&self, slot: PinnedBuf<u8>) {
        self.lock().push(slot);
    }

    fn bytes(&self) -> u64 {
        self.lock().iter().map(|slot| slot.len() as u64).sum()
    }

    /// Free them all. How many bytes.
    pub(crate) fn clear(&self) -> usize {
        let slots = std::mem::take(&mut *self.lock());
        slots.iter().map(|slot| slot.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PinnedBuf<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot: one of an earlier load, or a new one.
pub(super) fn another(device: &Device, bytes: usize) -> Result<PinnedBuf<u8>> {
    match device.shared.idle_slots.take(bytes) {
        Some(slot) => Ok(slot),
        None => device.pinned(bytes),
    }
}

/// What a load may page-lock without asking anybody to give some back.
pub(super) fn left_bytes(device: &Device) -> Result<u64> {
    let budget = device.budget();
    let left = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    Ok(left.saturating_add(device.shared.idle_slots.bytes()))
}

/// Keep an error of the driver's that the load does not end with.
pub(super) fn keep_stray(device: &Device, error: Error) {
    if let Error::Driver(error) = error {
        device.shared.link.keep_stray(error);
    }
}
