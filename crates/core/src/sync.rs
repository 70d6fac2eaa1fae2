//! Swaps std for loom. Only GPU-independent code uses it ([`crate::transfer_protocol`], the scheduler of
//! the express lane), so the same protocol runs in production, under loom and under miri.

#[cfg(loom)]
use loom::sync;
#[cfg(not(loom))]
use std::sync;

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
pub(crate) use sync::atomic::{AtomicUsize, Ordering};
pub(crate) use sync::{Arc, Mutex};

/// `std::cell::UnsafeCell` with loom's interface.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with a pointer for shared access.
    pub(crate) fn with<O>(&self, read: impl FnOnce(*const T) -> O) -> O {
        read(self.0.get())
    }

    /// Calls `write` with a pointer for exclusive access.
    pub(crate) fn with_mut<O>(&self, write: impl FnOnce(*mut T) -> O) -> O {
        write(self.0.get())
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Locks a mutex even if another thread panicked while holding it: no code leaves data behind our locks in
/// an inconsistent state.
pub fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.lock_anyway()
}

/// A mutex from std or loom.
pub trait Lock {
    /// Type of the guard.
    type Guard<'a>
    where
        Self: 'a;

    /// Locks, ignoring poison.
    fn lock_anyway(&self) -> Self::Guard<'_>;
}

impl<T> Lock for std::sync::Mutex<T> {
    type Guard<'a>
        = std::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_anyway(&self) -> Self::Guard<'_> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(loom)]
impl<T> Lock for loom::sync::Mutex<T> {
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_anyway(&self) -> Self::Guard<'_> {
        self.lock().expect("no panic while locked")
    }
}

/// Waits until `done`. Returns false if `stopped` was true before that.
pub(crate) fn wait_until(done: impl Fn() -> bool, stopped: impl Fn() -> bool) -> bool {
    let mut spins = 0;
    while !done() {
        if stopped() {
            return false;
        }
        pause(&mut spins);
    }
    true
}

/// Backs off while waiting for another thread: spins at first, then yields.
fn pause(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    match *spins < 500 && !cfg!(miri) {
        true => std::hint::spin_loop(),
        false => std::thread::yield_now(),
    }
}
