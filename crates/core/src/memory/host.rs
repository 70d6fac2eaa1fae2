//! Pinned memory for elements of one type.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::{HostFlags, HostPtr};

use super::pinning::Block;
use super::{PinnedFor, bytes_of, check_align};
use crate::Result;
use crate::device_core::DeviceCore;

/// `len` elements in a page-locked block of their own. Every pinned buffer that is not from a pool wraps
/// one.
pub(crate) struct HostMemory<T> {
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
unsafe impl<T: Send> Send for HostMemory<T> {}
// SAFETY: shared access only reads the pointer, as for `Box<[T]>`.
unsafe impl<T: Sync> Sync for HostMemory<T> {}

impl<T: Pod> HostMemory<T> {
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

impl<T> HostMemory<T> {
    pub(crate) fn start(&self) -> NonNull<T> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn pinned_for(&self) -> PinnedFor<'_> {
        PinnedFor {
            core: &self.core,
            portable: self.portable,
        }
    }

    pub(crate) fn host_ptr(&self) -> HostPtr {
        self.start.cast()
    }
}
