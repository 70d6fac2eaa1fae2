//! Handles as programs hold them: numbers that look like pointers and are never followed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::{INVALID_HANDLE, Outcome};

/// A table from handles to what they stand for.
pub struct Handles<T> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    next: usize,
    entries: HashMap<usize, T>,
}

/// Distance between two handles, as between two objects on a heap.
const STEP: usize = 0x40;

impl<T: Clone> Handles<T> {
    /// An empty table. Tables with different `kind` never give out the same handle, so that an
    /// event passed as a stream is noticed.
    pub fn new(kind: usize) -> Self {
        let next = (0x5100 + kind) << 32;
        Self {
            inner: Mutex::new(Inner {
                next,
                entries: HashMap::new(),
            }),
        }
    }

    /// Puts in what `make` builds around its own handle, and returns it with the handle.
    pub fn insert(&self, make: impl FnOnce(usize) -> T) -> (usize, T) {
        let mut inner = self.lock();
        let handle = inner.next;
        inner.next += STEP;
        let entry = make(handle);
        inner.entries.insert(handle, entry.clone());
        (handle, entry)
    }

    /// What the handle stands for.
    pub fn find(&self, handle: usize) -> Outcome<T> {
        let inner = self.lock();
        inner.entries.get(&handle).cloned().ok_or(INVALID_HANDLE)
    }

    /// Takes the entry out; from then on the handle is unknown.
    pub fn remove(&self, handle: usize) -> Outcome<T> {
        self.lock().entries.remove(&handle).ok_or(INVALID_HANDLE)
    }

    /// Forgets entries that `keep` does not hold on to.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        self.lock().entries.retain(|_, entry| keep(entry));
    }

    /// Calls `visit` with each entry.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        self.lock().entries.values().for_each(&mut visit);
    }

    /// The handle of an entry that `is` recognises.
    pub fn position(&self, is: impl Fn(&T) -> bool) -> Option<usize> {
        let inner = self.lock();
        let found = inner.entries.iter().find(|(_, entry)| is(entry));
        found.map(|(handle, _)| *handle)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_handle_is_an_error() {
        let handles = Handles::new(0);
        let (handle, _) = handles.insert(|_| 'a');
        assert_eq!(handles.find(handle), Ok('a'));
        assert_eq!(handles.find(handle + 1), Err(INVALID_HANDLE));
        assert_eq!(handles.remove(handle), Ok('a'));
        assert_eq!(handles.remove(handle), Err(INVALID_HANDLE));
    }

    #[test]
    fn kinds_share_no_handle() {
        let (stream, _) = Handles::new(1).insert(|_| ());
        assert!(Handles::<()>::new(2).find(stream).is_err());
    }
}
