//! The ring: pinned memory that chunks pass through.
//!
//! A slot has one owner at a time: the ring while it is idle, a copy while it is filled or emptied.
//! It carries the fence of its last use, so that the host never touches it while the device may
//! still read or write it. A copy works with a [`RingShare`] of the slots.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pinlane_driver::DevicePtr;

use super::staging_kernels::StagingKernels;
use crate::clock_aware_threads::wait_elsewhere;
use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::memory::{DeviceMemory, MakeRoom, PinnedPool, PinnedSource, PoolBuf};
use crate::sync::{Arc as CoreArc, lock, wait_until};
use crate::transfer_protocol::{DeferredFree, Fence, Settled};
use crate::unwind::on_unwind;
use crate::{Result, Stream};

/// Fence queries before the driver is asked to wait: about a millisecond.
const QUERIES: usize = 2000;

/// One chunk of pinned memory.
pub(super) struct Slot {
    memory: PoolBuf<u8>,
    /// As many bytes on the device, for chunks that kernels scatter, gather or convert, and the
    /// kernels that may be running on it.
    scratch: Option<(DeviceMemory, Arc<StagingKernels>)>,
    /// The last use by the device.
    pub(super) fence: Option<DeviceFence>,
    /// It is unknown whether the device still uses it, so nothing may touch or free it.
    pub(super) stranded: bool,
}

impl Slot {
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        self.memory.start().cast_mut().wrapping_add(offset)
    }

    /// Device memory of the same size for `kernels`, allocated at first use.
    pub(super) fn scratch(
        &mut self,
        core: &Arc<DeviceCore>,
        kernels: &Arc<StagingKernels>,
    ) -> Result<DevicePtr> {
        let memory = match self.scratch.take() {
            // The slot is idle here: kernels of its last use are done.
            Some((memory, _)) => memory,
            None => DeviceMemory::plain(core, self.memory.len())?,
        };
        let scratch = self.scratch.insert((memory, Arc::clone(kernels)));
        Ok(scratch.0.ptr())
    }

    fn is_in_use(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| !fence.has_let_go())
    }

    /// Waits a short time by polling, which notices the end sooner than the driver's own wait.
    fn poll(&self) {
        for _ in 0..QUERIES {
            if !self.is_in_use() {
                return;
            }
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
    }
}

/// Idle slots, and how many there may be.
pub(super) struct Ring {
    pub(super) core: Arc<DeviceCore>,
    deferred: CoreArc<DeferredFree<DeviceFence>>,
    /// Frees a slot as soon as the ring returns it.
    pool: PinnedPool,
    pub(super) slot_bytes: usize,
    slots_at_most: usize,
    state: Mutex<RingState>,
    returned: Condvar,
    /// Copies that have no slot at all.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct RingState {
    /// The longest idle first: its fence fires first.
    idle: VecDeque<Slot>,
    /// Slots that exist, idle or not.
    made: usize,
}

impl Ring {
    pub(super) fn new(
        core: &Arc<DeviceCore>,
        deferred: &CoreArc<DeferredFree<DeviceFence>>,
        pool: &PinnedPool,
        slot_bytes: usize,
        slots_at_most: usize,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            deferred: CoreArc::clone(deferred),
            pool: pool.clone(),
            slot_bytes,
            slots_at_most,
            state: Mutex::default(),
            returned: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Pinned bytes of all slots, idle or not.
    pub(super) fn pinned_bytes(&self) -> usize {
        lock(&self.state).made * self.slot_bytes
    }

    /// Whether a copy waits for its first slot.
    fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A free slot, or a new one. `Ok(None)` if all are in use.
    fn try_claim(&self, make_room: MakeRoom) -> Result<Option<Slot>> {
        let mut state = lock(&self.state);
        if state.idle.front().is_some_and(|slot| !slot.is_in_use()) {
            return Ok(state.idle.pop_front());
        }
        if state.made == self.slots_at_most {
            // Streams differ in speed: the longest idle slot need not be the first to become free.
            let free = state.idle.iter().position(|slot| !slot.is_in_use());
            return Ok(free.and_then(|at| state.idle.remove(at)));
        }
        state.made += 1;
        drop(state);
        let pin = || self.pool.take_slot(self.slot_bytes, make_room);
        let memory = on_unwind(|| self.lost_one(), pin);
        Ok(Some(Slot {
            memory: memory.inspect_err(|_| self.lost_one())?,
            scratch: None,
            fence: None,
            stranded: false,
        }))
    }

    pub(super) fn claim(&self) -> Result<Slot> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = || {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        };
        let claimed = on_unwind(waited, || self.wait_and_claim());
        waited();
        claimed
    }

    fn wait_and_claim(&self) -> Result<Slot> {
        loop {
            // Without a first slot the copy cannot start. The driver's own copy is better than a wait for others.
            let refused = match self.try_claim(MakeRoom::AllIdle) {
                Ok(Some(slot)) => return Ok(slot),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let mut state = lock(&self.state);
            match (state.idle.pop_front(), refused) {
                (None, Some(error)) if state.made == 0 => return Err(error),
                (slot, refused) => {
                    if let Some(error) = refused {
                        self.core.keep_stray_error(error);
                    }
                    if let Some(slot) = slot {
                        drop(state);
                        return self.settled(slot);
                    }
                }
            }
            // Other copies hold all slots and return each in turn. The timeout only guards against
            // a slot that was lost meanwhile.
            let pause = Duration::from_millis(1);
            wait_elsewhere(&*self.core.driver, || {
                let waited = self.returned.wait_timeout(state, pause);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            });
        }
    }

    /// Waits until the device no longer uses a slot. On an error the slot has returned to the ring,
    /// or is leaked if the device may still use it.
    fn settled(&self, slot: Slot) -> Result<Slot> {
        let (slot, settled) = self.with_slot(slot, |slot| {
            if self.core.driver.info().simulated.is_none() {
                slot.poll();
            }
            slot.fence.take().map(|fence| fence.settle())
        });
        match settled {
            None | Some(Settled::Done(Ok(()))) => Ok(slot),
            Some(Settled::Done(Err(error))) if error.is_fatal() => {
                self.give_back(slot);
                Err(error.into())
            }
            Some(Settled::Done(Err(error))) => {
                // A query failed, not the work: the slot is free.
                self.core.keep_stray(error);
                Ok(slot)
            }
            Some(Settled::Unknown(error)) => {
                self.leak(slot);
                Err(error.into())
            }
        }
    }

    /// Calls the driver for a slot. If that panics, the slot is leaked.
    pub(super) fn with_slot<T>(&self, slot: Slot, call: impl FnOnce(&mut Slot) -> T) -> (Slot, T) {
        let mut slot = ManuallyDrop::new(slot);
        let result = on_unwind(|| self.lost_one(), || call(&mut slot));
        (ManuallyDrop::into_inner(slot), result)
    }

    pub(super) fn give_back(&self, slot: Slot) {
        lock(&self.state).idle.push_back(slot);
        self.returned.notify_one();
    }

    /// Keeps a slot from everyone, since the device may use it forever.
    pub(super) fn leak(&self, slot: Slot) {
        std::mem::forget(slot);
        self.lost_one();
    }

    fn lost_one(&self) {
        lock(&self.state).made -= 1;
        self.returned.notify_one();
    }

    /// Frees idle slots that the device does not use. Returns their bytes.
    pub(super) fn trim(&self) -> usize {
        let mut free = Vec::new();
        let mut state = lock(&self.state);
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
}

impl Drop for Ring {
    /// Slots in flight stay with the device until it is done with them.
    fn drop(&mut self) {
        // If the driver panics, all slots that are left are leaked.
        let mut idle = ManuallyDrop::new(std::mem::take(&mut lock(&self.state).idle));
        while let Some(slot) = idle.pop_front() {
            let (mut slot, in_use) = self.with_slot(slot, |slot| slot.is_in_use());
            if let (true, Some(fence)) = (in_use, slot.fence.take()) {
                self.deferred.defer(vec![fence], Box::new(slot));
            }
        }
        drop(ManuallyDrop::into_inner(idle));
    }
}

/// The slots of one copy. It cycles through them, and gives some back as soon as another copy has
/// none.
pub(super) struct RingShare<'a> {
    pub(super) ring: &'a Ring,
    slots_at_most: usize,
    state: Mutex<ShareState>,
}

struct ShareState {
    /// No lane works on them; the device may still use them. The longest idle first.
    idle: VecDeque<Slot>,
    /// All slots of the share, idle or not.
    held: usize,
}

impl<'a> RingShare<'a> {
    /// A share starts with one slot, so that it never has none.
    pub(super) fn new(ring: &'a Ring, first: Slot, slots_at_most: usize) -> Self {
        Self {
            ring,
            slots_at_most,
            state: Mutex::new(ShareState {
                idle: VecDeque::from([first]),
                held: 1,
            }),
        }
    }

    /// A free slot. Waits for one; `None` if `stopped` was true before that.
    pub(super) fn take(&self, stopped: impl Fn() -> bool) -> Result<Option<Slot>> {
        loop {
            let free = lock(&self.state)
                .idle
                .pop_front_if(|slot| !slot.is_in_use());
            if let Some(slot) = free.or_else(|| self.take_another()) {
                return Ok(Some(slot));
            }
            let idle = lock(&self.state).idle.pop_front();
            if let Some(slot) = idle {
                return self.settled(slot).map(Some);
            }
            // Other lanes work on all of them, and do not wait for this one.
            if !wait_until(|| !lock(&self.state).idle.is_empty(), &stopped) {
                return Ok(None);
            }
        }
    }

    /// One more slot, if the share may grow and one is free now. More slots only add speed: without
    /// them the copy continues with those it has.
    pub(super) fn take_another(&self) -> Option<Slot> {
        if lock(&self.state).held >= self.slots_at_most || self.ring.is_short() {
            return None;
        }
        let slot = self
            .ring
            .try_claim(MakeRoom::DroppedBuffers)
            .unwrap_or_else(|error| {
                self.ring.core.keep_stray_error(error);
                None
            })?;
        // Counted only now: if the share seemed to have a slot more than it has, another lane could
        // give away the last one.
        lock(&self.state).held += 1;
        Some(slot)
    }

    /// Waits until the device no longer uses a slot.
    pub(super) fn settled(&self, slot: Slot) -> Result<Slot> {
        self.ring
            .settled(slot)
            .inspect_err(|_| lock(&self.state).held -= 1)
    }

    /// Returns a slot to the share, or to a copy that has none.
    pub(super) fn put(&self, slot: Slot) {
        if let Some(slot) = self.spare(slot) {
            lock(&self.state).idle.push_back(slot);
        }
    }

    /// Gives a slot to another copy that has none. The last slot of the share comes back instead.
    pub(super) fn spare(&self, slot: Slot) -> Option<Slot> {
        let mut state = lock(&self.state);
        if state.held == 1 || !self.ring.is_short() {
            return Some(slot);
        }
        state.held -= 1;
        drop(state);
        self.ring.give_back(slot);
        None
    }

    /// Submits work that uses `slot`, and returns the slot with the fence of that work. On an error
    /// the slot has returned to the share, or is leaked if the device may still use it.
    pub(super) fn submit_with_fence(
        &self,
        stream: &Stream,
        slot: Slot,
        submit: impl FnOnce(&mut Slot) -> Result<()>,
    ) -> Result<Slot> {
        let (mut slot, done) = self.ring.with_slot(slot, |slot| {
            let fence = stream.shared().events.claim()?;
            Ok((submit(slot), fence.record(stream.live())))
        });
        let error = match done {
            Err(error) => error,
            Ok((submitted, Ok(fence))) => {
                slot.fence = Some(fence);
                match submitted {
                    Ok(()) => return Ok(slot),
                    Err(error) => error,
                }
            }
            Ok((submitted, Err(unrecorded))) => {
                if !unrecorded.is_fatal() && !stream.live().drains() {
                    slot.stranded = true;
                }
                match submitted {
                    Ok(()) => unrecorded.into(),
                    Err(error) => {
                        stream.shared().core.keep_stray(unrecorded);
                        error
                    }
                }
            }
        };
        if slot.stranded {
            lock(&self.state).held -= 1;
            self.ring.leak(slot);
        } else {
            self.put(slot);
        }
        Err(error)
    }
}

impl Drop for RingShare<'_> {
    fn drop(&mut self) {
        for slot in lock(&self.state).idle.drain(..) {
            self.ring.give_back(slot);
        }
    }
}
