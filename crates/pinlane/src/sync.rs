//! The seam that swaps std for loom. Only what knows no GPU builds on it ([`crate::core`], the
//! relay of the express lane), so that the same protocol
//! code runs in production, under loom and under miri.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Locks, also after a panic elsewhere: what the core's locks guard is never left half-changed.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no panic while locked")
}

/// Wait a little for another thread: spin at first, then let others run.
#[cfg(not(loom))]
pub(crate) fn pause(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < 500 && !cfg!(miri) {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Let others run.
#[cfg(loom)]
pub(crate) fn pause(_: &mut u32) {
    loom::thread::yield_now();
}
