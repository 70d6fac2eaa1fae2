//! Pinned memory that reads and writes like a slice.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::{HostFlags, HostPtr};

use super::buffer_traits::slice_like;
use super::host::HostMemory;
use super::{PinnedFor, PinnedSource, PinnedTarget, to_pinned};
use crate::device_core::DeviceCore;
use crate::{Device, Error, Result};

/// Page-locked memory, which the GPU's copy engines read and write directly.
///
/// Use it like a slice. A transfer takes it by value and returns it at the end, so it cannot be touched
/// while it is in flight:
///
/// ```compile_fail
/// # fn example(stream: &pinlane::Stream, mut buffer: pinlane::PinnedBuf<u8>, mut target: pinlane::DeviceBuf<u8>) {
/// let transfer = stream.upload(buffer, &mut target);
/// buffer[0] = 1; // moved into the transfer: does not compile
/// # }
/// ```
pub struct PinnedBuf<T> {
    memory: HostMemory<T>,
}

impl Device {
    /// Allocates pinned memory for `len` elements. Their values are unspecified.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedBuf<T>> {
        self.pinned_with(len, HostFlags::default().portable)
    }

    /// Allocates pinned memory. Unless it is `portable`, only this device may use it.
    pub fn pinned_with<T: Pod>(&self, len: usize, portable: bool) -> Result<PinnedBuf<T>> {
        let flags = HostFlags {
            portable,
            ..HostFlags::default()
        };
        let pin = || PinnedBuf::allocate(&self.shared.core, len, flags);
        match pin() {
            // Freeing the device's idle buffers may make room.
            Err(Error::OverBudget { .. }) if self.shared.pinned_store.free_idle() > 0 => pin(),
            pinned => pinned,
        }
    }

    /// Allocates pinned memory with a copy of `values`. [`to_pinned`](crate::ToPinned::to_pinned) does the
    /// same.
    pub fn pinned_from<T: Pod>(&self, values: &[T]) -> Result<PinnedBuf<T>> {
        let mut buffer = self.pinned(values.len())?;
        to_pinned::copy(values, &mut buffer);
        Ok(buffer)
    }
}

impl<T: Pod> PinnedBuf<T> {
    pub(crate) fn allocate(core: &Arc<DeviceCore>, len: usize, flags: HostFlags) -> Result<Self> {
        let memory = HostMemory::allocate(core, len, flags)?;
        Ok(Self { memory })
    }

    pub(super) fn host_ptr(&self) -> HostPtr {
        self.memory.host_ptr()
    }
}

slice_like!(PinnedBuf);

impl<T> Deref for PinnedBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised, aligned elements; writing needs `&mut self` or ownership.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr(), self.memory.len()) }
    }
}

impl<T> DerefMut for PinnedBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes all other access.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().as_ptr(), self.memory.len()) }
    }
}

// SAFETY: the memory is page-locked, does not move with the value, and is only reachable through it.
unsafe impl<T: Pod + Send> PinnedSource<T> for PinnedBuf<T> {
    fn start(&self) -> *const T {
        self.memory.start().as_ptr()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn pinned_for(&self) -> PinnedFor<'_> {
        self.memory.pinned_for()
    }
}

// SAFETY: as above; it is ordinary writable memory.
unsafe impl<T: Pod + Send> PinnedTarget<T> for PinnedBuf<T> {
    fn start_mut(&mut self) -> *mut T {
        self.memory.start().as_ptr()
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
