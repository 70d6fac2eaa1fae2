//! Pinned memory that reads and writes like a slice.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::HostFlags;

use super::buffer_macros::slice_like;
use super::pinning::Block;
use super::{PinnedSlice, bytes_of, check_align, to_pinned};
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
    core: Arc<DeviceCore>,
    /// Dangling if there are no bytes: nothing is pinned then.
    start: NonNull<T>,
    len: usize,
    portable: bool,
    /// Owns the memory at `start`. Boxed, because buffers move often and this part never has to.
    _block: Option<Box<Block>>,
    elements: PhantomData<T>,
}

// SAFETY: it owns the memory as a `Box<[T]>` does: plain data behind one pointer.
unsafe impl<T: Send> Send for PinnedBuf<T> {}
// SAFETY: shared access only reads elements, as for `Box<[T]>`.
unsafe impl<T: Sync> Sync for PinnedBuf<T> {}

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

    /// Allocates pinned memory with a copy of `values`, as [`to_pinned`](crate::ToPinned::to_pinned).
    pub fn pinned_from<T: Pod>(&self, values: &[T]) -> Result<PinnedBuf<T>> {
        let mut buffer = self.pinned(values.len())?;
        to_pinned::copy(values, &mut buffer);
        Ok(buffer)
    }
}

impl<T: Pod> PinnedBuf<T> {
    pub(crate) fn allocate(core: &Arc<DeviceCore>, len: usize, flags: HostFlags) -> Result<Self> {
        let bytes = bytes_of::<T>(len)?;
        check_align::<T>()?;
        let block = match bytes {
            0 => None,
            _ => Some(Box::new(Block::pin(core, bytes, flags)?)),
        };
        let start = block.as_ref().map(|block| block.start().cast());
        Ok(Self {
            core: Arc::clone(core),
            start: start.unwrap_or(NonNull::dangling()),
            len,
            portable: flags.portable,
            _block: block,
            elements: PhantomData,
        })
    }
}

impl<T> PinnedBuf<T> {
    pub(super) fn raw(&self) -> PinnedSlice<'_, T> {
        PinnedSlice::new(self.start, self.len, &self.core, self.portable)
    }
}

slice_like!(PinnedBuf<T>, T, [T], [T], [T: Pod + Send], [T: Pod + Send]);
