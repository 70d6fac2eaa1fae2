//! Pinned memory that reads and writes like a slice.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::HostFlags;

use super::buffer_macros::slice_like;
use super::pinning::{Block, whole_pages};
use super::{MakeRoom, PinnedSlice, PoolBuf, bytes_of, check_align, to_pinned};
use crate::device_core::DeviceCore;
use crate::{Device, Result};

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
///
/// The device keeps the memory of dropped buffers of up to 4 MiB for new ones of as many pages, at most 64
/// MiB of it, since asking the driver takes microseconds to milliseconds. [`Device::trim`] frees it, and so
/// does any request that the [`Budget`](crate::Budget) would refuse otherwise. Buffers start at a page.
///
/// If another library uses a buffer by its address, it must finish before the buffer is dropped: only the
/// driver's own free waits for it. [`Device::release_when_idle`] drops it in time.
pub struct PinnedBuf<T> {
    /// Dangling if there are no bytes: nothing is pinned then.
    start: NonNull<T>,
    len: usize,
    memory: Memory,
    elements: PhantomData<T>,
}

/// Owns what a buffer points to. Boxed, because buffers move often and this part never has to.
enum Memory {
    /// Returns to the device when it is dropped.
    Reused(Box<PoolBuf<u8>>),
    /// Is unlocked when it is dropped.
    Own {
        core: Arc<DeviceCore>,
        portable: bool,
        _block: Option<Box<Block>>,
    },
}

/// Larger buffers are not reused: mapping and registering them takes a third of the driver's time, and they
/// would push out many small ones.
const REUSED_BYTES_MAX: usize = 4 << 20;

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
        // Memory that the driver page-locked before a fork may not exist in the child. The driver answers.
        let may_reuse = portable && !self.shared.core.process.is_parent();
        if may_reuse && (1..=REUSED_BYTES_MAX).contains(&bytes_of::<T>(len)?) {
            return self.reused(len);
        }
        let flags = HostFlags {
            portable,
            ..HostFlags::default()
        };
        PinnedBuf::allocate(&self.shared.core, len, flags)
    }

    /// Pinned memory of a dropped buffer, or new one.
    fn reused<T: Pod>(&self, len: usize) -> Result<PinnedBuf<T>> {
        check_align::<T>()?;
        // In whole pages: the budget counts no others, and buffers of similar sizes share their memory.
        let bytes = whole_pages(bytes_of::<T>(len)?)?;
        let memory = self
            .shared
            .pinned_cache
            .take_slot(bytes, MakeRoom::AllIdleOrWait)?;
        Ok(PinnedBuf {
            start: memory.raw().start.cast(),
            len,
            memory: Memory::Reused(Box::new(memory)),
            elements: PhantomData,
        })
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
            start: start.unwrap_or(NonNull::dangling()),
            len,
            memory: Memory::Own {
                core: Arc::clone(core),
                portable: flags.portable,
                _block: block,
            },
            elements: PhantomData,
        })
    }
}

impl<T> PinnedBuf<T> {
    pub(super) fn raw(&self) -> PinnedSlice<'_, T> {
        let (core, portable) = match &self.memory {
            Memory::Reused(memory) => (memory.core(), true),
            Memory::Own { core, portable, .. } => (core, *portable),
        };
        PinnedSlice::new(self.start, self.len, core, portable)
    }
}

slice_like!(PinnedBuf<T>, T, [T], [T], [T: Pod + Send], [T: Pod + Send]);
