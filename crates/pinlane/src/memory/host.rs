//! One allocation of pinned memory.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::{Driver, HostFlags, HostPtr};

use super::{Home, bytes_of};
use crate::link::Link;
use crate::{Error, Result};

/// Pinned memory starts at a page, and no page is smaller.
const PAGE_BYTES: usize = 4096;

/// `len` elements from `host_alloc`, freed by `host_free`. All other pinned buffers wrap one.
pub(crate) struct HostMemory<T> {
    link: Arc<Link>,
    /// Dangling when there are no bytes: the driver is not asked for nothing.
    start: NonNull<T>,
    len: usize,
    portable: bool,
    elements: PhantomData<T>,
}

// SAFETY: the memory is owned like that of a `Box<[T]>`, plain data behind one pointer.
unsafe impl<T: Send> Send for HostMemory<T> {}
// SAFETY: shared access only reads the pointer, as for `Box<[T]>`.
unsafe impl<T: Sync> Sync for HostMemory<T> {}

impl<T: Pod> HostMemory<T> {
    pub(crate) fn allocate(link: &Arc<Link>, len: usize, flags: HostFlags) -> Result<Self> {
        let bytes = bytes_of::<T>(len)?;
        if align_of::<T>() > PAGE_BYTES {
            let align = align_of::<T>();
            return Err(Error::TooAligned { align });
        }
        let start = if bytes == 0 {
            NonNull::dangling()
        } else {
            link.driver.host_alloc(bytes, flags)?.cast()
        };
        link.books.pinned_bytes.add(bytes);
        Ok(Self {
            link: Arc::clone(link),
            start,
            len,
            portable: flags.portable,
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

    pub(crate) fn home(&self) -> Home<'_> {
        Home {
            link: &self.link,
            portable: self.portable,
        }
    }

    pub(crate) fn host_ptr(&self) -> HostPtr {
        self.start.cast()
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        let (bytes, ptr) = (self.bytes(), self.host_ptr());
        let free = |driver: &dyn Driver| {
            // SAFETY: `allocate` got it from `host_alloc`, this was its only owner, and a buffer
            // in flight is owned by its transfer or parked, so nothing uses it any more.
            unsafe { driver.host_free(ptr) }
        };
        if bytes == 0 || self.link.give_back(free) {
            self.link.books.pinned_bytes.subtract(bytes);
        }
    }
}
