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

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

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

/// Locks a mutex even if another thread panicked while holding it: nothing behind our locks is ever left
/// half-changed.
pub fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.lock_anyway()
}

/// A mutex of std, or of loom.
pub trait Lock {
    /// What holds the lock.
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
