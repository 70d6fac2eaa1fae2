//! Locking.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data stays valid if a thread panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
