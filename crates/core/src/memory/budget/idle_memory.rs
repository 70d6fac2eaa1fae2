//! Memory that is page-locked but not in use, or soon not to be.

use std::sync::{Arc, Mutex, Weak};

use crate::sync::lock;

/// Keeps page-locked memory for reuse, and gives it up when the budget is short.
pub(in crate::memory) trait IdleMemory: Send + Sync {
    /// What idle memory takes of the budget.
    fn idle_locked_bytes(&self) -> u64;

    /// Frees idle memory that takes at least `bytes` of the budget, or all there is. Returns how much.
    fn free_idle_locked(&self, bytes: u64) -> u64;

    /// Whether it is kept from buffers that were dropped. Without reuse, it would have been freed then.
    fn is_of_dropped_buffers(&self) -> bool;
}

/// Holds page-locked memory that is released once a device is idle.
pub(crate) trait PendingMemory: Send + Sync {
    /// Waits for the device and releases what was pending at the call. Returns `false` if it may not wait.
    fn release_pending(&self) -> bool;
}

/// Everything that holds pending memory of one budget.
#[derive(Default)]
pub(super) struct PendingList(Mutex<Vec<Weak<dyn PendingMemory>>>);

impl PendingList {
    pub(super) fn add(&self, pending: Weak<dyn PendingMemory>) {
        let mut list = lock(&self.0);
        list.retain(|pending| pending.strong_count() > 0);
        list.push(pending);
    }

    /// Waits until what is pending now is released. Returns `false` if there was nothing to wait for.
    pub(super) fn release(&self) -> bool {
        // Not under the lock: this calls drivers and destructors.
        let list: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let waited = list.iter().filter(|pending| pending.release_pending());
        waited.count() > 0
    }
}

/// Which idle memory a request may free.
#[derive(Clone, Copy)]
pub(in crate::memory) enum Frees<'a> {
    /// That of dropped buffers. For memory that only adds speed.
    DroppedBuffers,
    /// All that devices keep, and then this.
    AllAnd(Option<&'a dyn IdleMemory>),
}

/// All idle memory that counts in one budget.
#[derive(Default)]
pub(super) struct IdleList(Mutex<Vec<Weak<dyn IdleMemory>>>);

impl IdleList {
    pub(super) fn add(&self, idle: Weak<dyn IdleMemory>) {
        let mut list = lock(&self.0);
        list.retain(|idle| idle.strong_count() > 0);
        list.push(idle);
    }

    /// What all of it takes of the budget.
    pub(super) fn bytes(&self) -> u64 {
        sum_of(&self.living())
    }

    /// Frees at least `bytes`. Frees nothing if there is less, and returns whether it freed anything.
    pub(super) fn free(&self, bytes: u64, frees: Frees<'_>) -> bool {
        let mut others = self.living();
        let own = match frees {
            Frees::AllAnd(own) => own,
            Frees::DroppedBuffers => {
                others.retain(|idle| idle.is_of_dropped_buffers());
                None
            }
        };
        if sum_of(&others) + own.map_or(0, IdleMemory::idle_locked_bytes) < bytes {
            return false;
        }
        let mut freed_bytes = 0;
        for idle in others.iter().map(|idle| &**idle).chain(own) {
            if freed_bytes < bytes {
                freed_bytes += idle.free_idle_locked(bytes - freed_bytes);
            }
        }
        freed_bytes > 0
    }

    /// Not under the lock: the last reference may be dropped here, which calls the driver.
    fn living(&self) -> Vec<Arc<dyn IdleMemory>> {
        let list = lock(&self.0);
        list.iter().filter_map(Weak::upgrade).collect()
    }
}

fn sum_of(list: &[Arc<dyn IdleMemory>]) -> u64 {
    list.iter().map(|idle| idle.idle_locked_bytes()).sum()
}
