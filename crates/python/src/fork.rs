//! Forked children. They cannot use devices that were opened before the fork: the devices' threads are not there, and a
//! thread of the parent may have held any lock.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors::not_supported;

/// The process that opened the first device; 0 if none is open.
static OPENED_IN: AtomicU32 = AtomicU32::new(0);

/// A device is open in this process.
pub(crate) fn device_opened() {
    // Only the first time.
    let _ = OPENED_IN.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether this is a child that was forked after a device was opened.
pub(crate) fn is_child() -> bool {
    let opened_in = OPENED_IN.load(Ordering::Relaxed);
    opened_in != 0 && opened_in != std::process::id()
}

/// Raises in a forked child. Called before anything of a device is used, or locked.
pub(crate) fn refuse_child() -> PyResult<()> {
    match is_child() {
        true => Err(not_supported(
            "a forked child cannot use a device after its parent has opened one; start a new process instead of \
             forking, for instance with multiprocessing's start method \"spawn\"",
        )),
        false => Ok(()),
    }
}

/// Something of a device, which a forked child leaks: dropping it there could wait forever for a lock or a thread.
pub(crate) struct LeakedInChild<T>(ManuallyDrop<T>);

impl<T> From<T> for LeakedInChild<T> {
    fn from(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for LeakedInChild<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for LeakedInChild<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for LeakedInChild<T> {
    fn drop(&mut self) {
        if !is_child() {
            // SAFETY: dropped once, and never used again.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}
