//! Pinned memory that pieces are read into.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Device, Error, PinnedBuf, Result, Transfer};

/// Slots that no load uses, kept for the next one.
#[derive(Default, Debug)]
pub(crate) struct IdleSlots(Mutex<Vec<PinnedBuf<u8>>>);

impl IdleSlots {
    fn take(&self, bytes: usize) -> Option<PinnedBuf<u8>> {
        let mut idle = self.lock();
        let at = idle.iter().position(|slot| slot.len() == bytes)?;
        Some(idle.swap_remove(at))
    }

    fn put(&self, slot: PinnedBuf<u8>) {
        self.lock().push(slot);
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

/// The slots of one thread: some in flight, each with what it brings.
pub(super) struct Slots<'d, L> {
    device: &'d Device,
    bytes: usize,
    flying: VecDeque<(Transfer<PinnedBuf<u8>>, L)>,
    at_most: usize,
    spare: Option<PinnedBuf<u8>>,
}

/// A slot to read into.
pub(super) type Free<L> = (PinnedBuf<u8>, Option<L>);

impl<'d, L> Slots<'d, L> {
    /// So many at most, and one at once.
    pub(super) fn new(device: &'d Device, bytes: usize, at_most: usize) -> Result<Self> {
        let mut slots = Self {
            device,
            bytes,
            flying: VecDeque::new(),
            at_most,
            spare: None,
        };
        slots.spare = Some(slots.another()?);
        Ok(slots)
    }

    /// A slot that nothing uses, and what the one that was in flight longest has brought if it is
    /// that one.
    pub(super) fn free(&mut self) -> std::result::Result<Free<L>, (Error, L)> {
        if let Some(slot) = self.spare.take() {
            return Ok((slot, None));
        }
        if self.flying.len() < self.at_most && !self.first_is_done() {
            match self.another() {
                Ok(slot) => return Ok((slot, None)),
                // Fewer will do.
                Err(error) => {
                    keep_stray(self.device, error);
                    self.at_most = self.flying.len();
                }
            }
        }
        let (slot, landed) = self
            .land()
            .expect("one is in flight, or there is a spare")?;
        Ok((slot, Some(landed)))
    }

    /// A slot is in flight.
    pub(super) fn sent(&mut self, transfer: Transfer<PinnedBuf<u8>>, brings: L) {
        self.flying.push_back((transfer, brings));
    }

    /// A slot is not needed now.
    pub(super) fn put(&mut self, slot: PinnedBuf<u8>) {
        match self.spare {
            None => self.spare = Some(slot),
            Some(_) => self.device.shared.idle_slots.put(slot),
        }
    }

    /// Wait for the one that is in flight longest.
    pub(super) fn land(&mut self) -> Option<std::result::Result<Landed<L>, (Error, L)>> {
        let (transfer, brings) = self.flying.pop_front()?;
        Some(match transfer.wait() {
            Ok(slot) => Ok((slot, brings)),
            Err(failure) => {
                if let Some(slot) = failure.buffer {
                    self.put(slot);
                }
                Err((failure.error, brings))
            }
        })
    }

    /// Whether there is no need for another one.
    fn first_is_done(&self) -> bool {
        let first = self.flying.front();
        first.is_some_and(|(transfer, _)| {
            transfer.is_done().unwrap_or_else(|error| {
                keep_stray(self.device, error);
                false
            })
        })
    }

    fn another(&self) -> Result<PinnedBuf<u8>> {
        let idle = &self.device.shared.idle_slots;
        if let Some(slot) = idle.take(self.bytes) {
            return Ok(slot);
        }
        match self.device.pinned(self.bytes) {
            // Those of another size make room.
            Err(Error::OverBudget { .. }) if idle.clear() > 0 => self.device.pinned(self.bytes),
            pinned => pinned,
        }
    }
}

/// Keep an error of the driver's that the load does not end with.
pub(super) fn keep_stray(device: &Device, error: Error) {
    if let Error::Driver(error) = error {
        device.shared.link.keep_stray(error);
    }
}

/// A slot that has landed, and what it has brought.
type Landed<L> = (PinnedBuf<u8>, L);

impl<L> Drop for Slots<'_, L> {
    /// All slots go back, those in flight when they have landed.
    fn drop(&mut self) {
        while let Some(landed) = self.land() {
            match landed {
                Ok((slot, _)) => self.put(slot),
                Err((error, _)) => keep_stray(self.device, error),
            }
        }
        if let Some(slot) = self.spare.take() {
            self.device.shared.idle_slots.put(slot);
        }
    }
}
