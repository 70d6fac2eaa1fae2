//! Handles: numbers that look like pointers and are never dereferenced.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::error::{INVALID_HANDLE, Outcome};
use crate::machine::lock;

/// A table of objects by handle.
pub struct Handles<T>(Mutex<Inner<T>>);

struct Inner<T> {
    next: usize,
    entries: HashMap<usize, T>,
}

/// Distance between handles, similar to that of heap objects.
const STEP: usize = 0x40;

impl<T: Clone> Handles<T> {
    /// Creates a table. Tables of different `kind` share no handles, so that an event passed as a
    /// stream is detected.
    pub fn new(kind: usize) -> Self {
        Self(Mutex::new(Inner {
            next: (0x5100 + kind) << 32,
            entries: HashMap::new(),
        }))
    }

    /// Inserts an object; returns its handle.
    pub fn insert(&self, entry: T) -> usize {
        self.insert_with(|_| entry)
    }

    /// Inserts the object that `make` creates for its handle; returns the handle.
    pub fn insert_with(&self, make: impl FnOnce(usize) -> T) -> usize {
        let mut inner = self.lock();
        let handle = inner.next;
        inner.next += STEP;
        inner.entries.insert(handle, make(handle));
        handle
    }

    /// The object of a handle.
    pub fn find(&self, handle: usize) -> Outcome<T> {
        let inner = self.lock();
        inner.entries.get(&handle).cloned().ok_or(INVALID_HANDLE)
    }

    /// Removes an object; its handle becomes invalid.
    pub fn remove(&self, handle: usize) -> Outcome<T> {
        self.lock().entries.remove(&handle).ok_or(INVALID_HANDLE)
    }

    /// Removes the objects for which `keep` returns false.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        self.lock().entries.retain(|_, entry| keep(entry));
    }

    /// Calls `visit` for each object.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        self.lock().entries.values().for_each(&mut visit);
    }

    /// The handle of an object for which `is` returns true.
    pub fn position(&self, is: impl Fn(&T) -> bool) -> Option<usize> {
        let inner = self.lock();
        let found = inner.entries.iter().find(|(_, entry)| is(entry));
        found.map(|(handle, _)| *handle)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_handle_is_an_error() {
        let handles = Handles::new(0);
        let handle = handles.insert('a');
        assert_eq!(handles.find(handle), Ok('a'));
        assert_eq!(handles.find(handle + 1), Err(INVALID_HANDLE));
        assert_eq!(handles.remove(handle), Ok('a'));
        assert_eq!(handles.remove(handle), Err(INVALID_HANDLE));
    }

    #[test]
    fn kinds_share_no_handles() {
        let stream = Handles::new(1).insert(());
        assert!(Handles::<()>::new(2).find(stream).is_err());
    }
}
