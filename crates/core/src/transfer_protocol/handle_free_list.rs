//! Free list of expensive objects, each used by one owner at a time.

use crate::sync::{Mutex, lock};

/// Idle objects, ready to be claimed.
pub(crate) struct FreeList<S> {
    idle: Mutex<Vec<S>>,
}

impl<S> FreeList<S> {
    pub(crate) fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Claims an idle object or makes a new one. `make` runs outside the lock.
    pub(crate) fn claim<E>(&self, make: impl FnOnce() -> Result<S, E>) -> Result<S, E> {
        let idle = lock(&self.idle).pop();
        match idle {
            Some(slot) => Ok(slot),
            None => make(),
        }
    }

    /// Returns an object from [`claim`](Self::claim) to the list.
    pub(crate) fn release(&self, slot: S) {
        lock(&self.idle).push(slot);
    }
}
