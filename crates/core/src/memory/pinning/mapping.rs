//! Memory that we mapped ourselves.

use std::ptr::NonNull;

use super::pages::{Errno, Pages};

/// Fresh private memory of zeros, unmapped when it is dropped.
pub(super) struct Mapping {
    pages: &'static dyn Pages,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns the mapped memory, as a `Box<[u8]>` would.
unsafe impl Send for Mapping {}
// SAFETY: shared access gives out the address and passes ranges of it to system calls that every
// thread may make.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` is in whole pages.
    pub(super) fn new(pages: &'static dyn Pages, bytes: usize) -> Result<Self, Errno> {
        let start = pages.map(bytes)?;
        Ok(Self {
            pages,
            start,
            bytes,
        })
    }

    pub(super) fn pages(&self) -> &'static dyn Pages {
        self.pages
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ask for pages of this NUMA node, before any is there.
    pub(super) fn prefer_node(&self, node: u32) {
        // SAFETY: the range is this mapping, and asking moves no bytes.
        let _ = unsafe { self.pages.prefer_node(self.start, self.bytes, node) };
    }

    /// Leave it mapped for good.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing points into it any more.
        unsafe { self.pages.unmap(self.start, self.bytes) };
    }
}
