//! One copy's share of the ring.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::relay::Relay;
use super::ring::{LostOnUnwind, Ring, Slot};
use crate::Result;

/// Slots that a copy has to itself. It goes round in them, and gives some back as soon as another
/// copy has none.
pub(crate) struct Share<'a> {
    ring: &'a Ring,
    slots_at_most: usize,
    state: Mutex<State>,
}

struct State {
    /// Not being worked on; the device may still use them. The longest idle first.
    idle: VecDeque<Slot>,
    /// All slots of the share, idle or not.
    held: usize,
}

impl<'a> Share<'a> {
    /// A share that begins with one slot, so that it can never come to have none.
    pub(crate) fn new(ring: &'a Ring, first: Slot, slots_at_most: usize) -> Self {
        Self {
            ring,
            slots_at_most,
            state: Mutex::new(State {
                idle: VecDeque::from([first]),
                held: 1,
            }),
        }
    }

    /// A slot to work with, whatever the wait; `None` when the relay was stopped meanwhile.
    pub(crate) fn take(&self, relay: &Relay) -> Result<Option<Slot>> {
        loop {
            let mut state = self.state();
            if state.idle.front().is_some_and(|slot| !slot.is_in_use()) {
                return Ok(state.idle.pop_front());
            }
            drop(state);
            if let Some(slot) = self.take_another() {
                return Ok(Some(slot));
            }
            if let Some(slot) = self.pop_idle() {
                return self.settled(slot).map(Some);
            }
            // All are being worked on by other lanes, which wait for nobody.
            if !relay.wait_for(|| !self.state().idle.is_empty()) {
                return Ok(None);
            }
        }
    }

    /// One slot more, if the share may still grow and one is free now. More slots are a matter of
    /// speed only: refused, the copy goes on with those it has.
    pub(crate) fn take_another(&self) -> Option<Slot> {
        if self.state().held >= self.slots_at_most || self.ring.is_short() {
            return None;
        }
        let slot = self.ring.try_claim_or_note()?;
        // Counted only now: a share must never seem to have a slot more than it has, or another
        // lane would give away the last one.
        self.state().held += 1;
        Some(slot)
    }

    fn pop_idle(&self) -> Option<Slot> {
        self.state().idle.pop_front()
    }

    /// Wait until the device has let go of a slot.
    pub(crate) fn settled(&self, slot: Slot) -> Result<Slot> {
        self.ring
            .settled(slot)
            .inspect_err(|_| self.state().held -= 1)
    }

    /// Done with a slot for now.
    pub(crate) fn put(&self, slot: Slot) {
        if let Some(slot) = self.spare(slot) {
            self.state().idle.push_back(slot);
        }
    }

    /// Give a slot to another copy that has none, unless it is the last one here: then it comes
    /// back.
    pub(crate) fn spare(&self, slot: Slot) -> Option<Slot> {
        let mut state = self.state();
        if state.held == 1 || !self.ring.is_short() {
            return Some(slot);
        }
        state.held -= 1;
        drop(state);
        self.ring.give_back(slot);
        None
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.ring.slot_bytes()
    }

    /// Counts a slot out when it is dropped, which only a panic does.
    pub(crate) fn lost_on_unwind(&self) -> LostOnUnwind<'a> {
        LostOnUnwind(self.ring)
    }

    /// A slot was left alone for good.
    pub(crate) fn lost_one(&self) {
        self.state().held -= 1;
        self.ring.lost_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        super::guard(&self.state)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for slot in state.idle.drain(..) {
            self.ring.give_back(slot);
        }
    }
}
