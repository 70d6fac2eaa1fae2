//! The ring: pinned memory that chunks pass through.
//!
//! A slot is owned by whoever works with it: the ring while it is idle, a copy while it is filled or
//! emptied. It carries the fence of its last use, so that it is never touched while the device may
//! still read or write it.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinlane_driver::{DevicePtr, HostFlags};

use super::toolbox::Toolbox;
use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::memory::{DeviceMemory, PinnedBuf, PinnedSource};
use crate::protocol::{DeferredFree, Fence, Settled};
use crate::sync::Arc as CoreArc;
use crate::{Error, Result};

/// Questions to the driver before it is asked to wait: about a millisecond.
const WATCHES: usize = 2000;

/// One chunk of pinned memory.
pub(crate) struct Slot {
    memory: PinnedBuf<u8>,
    scratch: Option<Scratch>,
    /// The last use by the device.
    fence: Option<DeviceFence>,
    /// Nobody can tell whether the device still uses it.
    given_up: bool,
}

/// As many bytes on the device as the slot has, for chunks that are scattered or converted there.
struct Scratch {
    memory: DeviceMemory,
    /// Kernels that may be running on it.
    _tools: Arc<Toolbox>,
}

/// Idle slots, and how many may be made.
pub(crate) struct Ring {
    link: Arc<DeviceCore>,
    lot: CoreArc<DeferredFree<DeviceFence>>,
    slot_bytes: usize,
    slots_at_most: usize,
    state: Mutex<State>,
    returned: Condvar,
    /// Copies that have no slot at all.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The longest idle first: its fence fires first.
    idle: VecDeque<Slot>,
    made: usize,
}

impl Slot {
    pub(crate) fn start(&self) -> *mut u8 {
        self.memory.start().cast_mut()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Device memory of the same size, made at first use, for kernels of `tools`.
    pub(crate) fn scratch(
        &mut self,
        link: &Arc<DeviceCore>,
        tools: &Arc<Toolbox>,
    ) -> Result<DevicePtr> {
        let bytes = self.memory.len();
        let scratch = match &mut self.scratch {
            Some(scratch) => {
                // The slot is idle here: kernels of its last use are done.
                scratch._tools = Arc::clone(tools);
                scratch
            }
            none => none.insert(Scratch {
                memory: DeviceMemory::plain(link, bytes)?,
                _tools: Arc::clone(tools),
            }),
        };
        Ok(scratch.memory.ptr())
    }

    /// The device uses it until `fence` fires.
    pub(crate) fn in_use_until(&mut self, fence: DeviceFence) {
        self.fence = Some(fence);
    }

    /// The device uses it, and nobody can tell until when: to be left alone for good.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether the device may still use it.
    pub(crate) fn is_in_use(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| !fence.has_let_go())
    }

    /// Wait for a short time by asking: the driver's own wait takes longer to notice.
    fn watch(&self) {
        for _ in 0..WATCHES {
            if !self.is_in_use() {
                return;
            }
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
    }

    /// Wait until the device has let go of it. An error only where that is not so, or the device is
    /// dead.
    fn settle(&mut self) -> std::result::Result<(), Unsettled> {
        let Some(fence) = self.fence.take() else {
            return Ok(());
        };
        match fence.settle() {
            Settled::Done(Ok(())) => Ok(()),
            Settled::Done(Err(error)) if error.is_fatal() => Err(Unsettled::Dead(error.into())),
            Settled::Done(Err(error)) => {
                // A question failed, not the work: the slot is free.
                fence.note(error);
                Ok(())
            }
            Settled::Unknown(error) => Err(Unsettled::Unknown(error.into())),
        }
    }
}

/// Why a slot cannot be used.
enum Unsettled {
    /// The device is gone, and has let go of the slot.
    Dead(Error),
    /// Nobody can tell whether the device still uses it.
    Unknown(Error),
}

impl Ring {
    pub(crate) fn new(
        link: &Arc<DeviceCore>,
        lot: &CoreArc<DeferredFree<DeviceFence>>,
        slot_bytes: usize,
        slots_at_most: usize,
    ) -> Self {
        Self {
            link: Arc::clone(link),
            lot: CoreArc::clone(lot),
            slot_bytes,
            slots_at_most,
            state: Mutex::default(),
            returned: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Pinned bytes of all slots, idle or not.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.state().made * self.slot_bytes
    }

    /// Whether a copy waits for its first slot.
    pub(crate) fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A slot that nobody uses, if there is one or one can be made. `Ok(None)` when all are in use.
    pub(crate) fn try_claim(&self) -> Result<Option<Slot>> {
        let mut state = self.state();
        if state.idle.front().is_some_and(|slot| !slot.is_in_use()) {
            return Ok(state.idle.pop_front());
        }
        if state.made == self.slots_at_most {
            // Streams differ in speed: the longest idle need not be the first that is free.
            let free = state.idle.iter().position(|slot| !slot.is_in_use());
            return Ok(free.and_then(|at| state.idle.remove(at)));
        }
        state.made += 1;
        drop(state);
        let counted = LostOnUnwind(self);
        let made = PinnedBuf::allocate(&self.link, self.slot_bytes, HostFlags::default());
        std::mem::forget(counted);
        match made {
            Ok(memory) => Ok(Some(Slot {
                memory,
                scratch: None,
                fence: None,
                given_up: false,
            })),
            Err(error) => {
                self.state().made -= 1;
                Err(error)
            }
        }
    }

    /// The same for those who can do without: an error is noted.
    pub(crate) fn try_claim_or_note(&self) -> Option<Slot> {
        self.try_claim().unwrap_or_else(|error| {
            if let Error::Driver(error) = error {
                self.link.keep_stray(error);
            }
            None
        })
    }

    /// A slot that nobody uses, whatever the wait.
    pub(crate) fn claim(&self) -> Result<Slot> {
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let refused = match self.try_claim() {
                Ok(Some(slot)) => return Ok(slot),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let mut state = self.state();
            match (state.idle.pop_front(), refused) {
                (None, Some(error)) if state.made == 0 => return Err(error),
                (slot, refused) => {
                    if let Some(Error::Driver(error)) = refused {
                        self.link.keep_stray(error);
                    }
                    if let Some(slot) = slot {
                        drop(state);
                        return self.settled(slot);
                    }
                }
            }
            // Others hold all of them, and give back each in turn. The time limit only guards
            // against a slot that was lost meanwhile.
            let pause = Duration::from_millis(1);
            let waited = self.returned.wait_timeout(state, pause);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Wait until a slot is free to be used. On an error it has gone back, or stays where it is for
    /// good.
    pub(crate) fn settled(&self, slot: Slot) -> Result<Slot> {
        let mut slot = ManuallyDrop::new(slot); // kept by a panic of the driver's
        let counted = LostOnUnwind(self);
        if self.link.driver.info().simulated.is_none() {
            slot.watch();
        }
        let settled = slot.settle();
        std::mem::forget(counted);
        match settled {
            Ok(()) => Ok(ManuallyDrop::into_inner(slot)),
            Err(Unsettled::Dead(error)) => {
                self.give_back(ManuallyDrop::into_inner(slot));
                Err(error)
            }
            Err(Unsettled::Unknown(error)) => {
                self.lost_one(); // and its memory stays
                Err(error)
            }
        }
    }

    pub(crate) fn give_back(&self, slot: Slot) {
        self.state().idle.push_back(slot);
        self.returned.notify_one();
    }

    /// A slot was left alone for good.
    pub(crate) fn lost_one(&self) {
        self.state().made -= 1;
        self.returned.notify_one();
    }

    /// Free idle slots that the device does not use. How many bytes.
    pub(crate) fn trim(&self) -> usize {
        let mut free = Vec::new();
        let mut state = self.state();
        let mut at = 0;
        while at < state.idle.len() {
            if state.idle[at].is_in_use() {
                at += 1;
            } else {
                free.extend(state.idle.remove(at));
                state.made -= 1;
            }
        }
        drop(state); // freeing calls the driver
        free.len() * self.slot_bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        super::guard(&self.state)
    }
}

impl Drop for Ring {
    /// Slots in flight are parked with the device.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Kept by a panic of the driver's, with all that were not looked at.
        let mut idle = ManuallyDrop::new(std::mem::take(&mut state.idle));
        while let Some(slot) = idle.pop_front() {
            let mut slot = ManuallyDrop::new(slot);
            let in_use = slot.is_in_use();
            let fence = slot.fence.take();
            let slot = ManuallyDrop::into_inner(slot);
            if let (true, Some(fence)) = (in_use, fence) {
                self.lot.defer(vec![fence], Box::new(slot));
            }
        }
        drop(ManuallyDrop::into_inner(idle));
    }
}

/// Counts a slot out that a panic keeps from coming back.
pub(crate) struct LostOnUnwind<'a>(pub(crate) &'a Ring);

impl Drop for LostOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.lost_one();
    }
}

/// Counts a copy that waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
