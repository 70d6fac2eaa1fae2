//! Values to drop once the device has been idle after they were queued.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Keeps values until a wait for the whole device that began after they were queued.
pub(crate) struct ReleaseQueue<T> {
    /// In the order in which they were queued. Dropped explicitly: without a wait they are leaked.
    queued: Mutex<Vec<ManuallyDrop<T>>>,
    /// Length of `queued`, readable without the lock.
    count: AtomicUsize,
    /// Held from the beginning of a wait until its values are dropped. So whoever gets it next finds them gone.
    round: Mutex<()>,
}

impl<T> ReleaseQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            queued: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            round: Mutex::new(()),
        }
    }

    pub(crate) fn push(&self, value: T) {
        let mut queued = lock(&self.queued);
        queued.push(ManuallyDrop::new(value));
        self.count.store(queued.len(), Ordering::Release);
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Calls `wait`, and if it returns true, drops what was queued before. Otherwise all of it stays. Waits
    /// for a round on another thread first. Returns the answer of `wait`; true if nothing was queued.
    pub(crate) fn release(&self, wait: impl FnOnce() -> bool) -> bool {
        let _round = lock(&self.round);
        // Values are added behind these, and only this round removes any.
        let before_wait = lock(&self.queued).len();
        if before_wait == 0 {
            return true;
        }
        if !wait() {
            return false;
        }
        for value in self.take(before_wait) {
            // The panic hook has reported a panic, and dropping the payload might panic again.
            catch_unwind(AssertUnwindSafe(|| drop(value))).unwrap_or_else(std::mem::forget);
        }
        true
    }

    /// Takes out all values. The device may still use them.
    pub(crate) fn give_up(&self) -> Vec<T> {
        let _round = lock(&self.round);
        self.take(usize::MAX)
    }

    /// Takes out the first values. Called in a round only.
    fn take(&self, at_most: usize) -> Vec<T> {
        let mut queued = lock(&self.queued);
        let taken = queued.len().min(at_most);
        let values = queued.drain(..taken);
        let values = values.map(ManuallyDrop::into_inner).collect();
        self.count.store(queued.len(), Ordering::Release);
        values
    }
}
