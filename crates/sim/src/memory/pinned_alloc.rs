//! The memory of pinned allocations.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::HostBytes;

/// Pinned memory is page-aligned.
const PAGE_BYTES: usize = 4096;
/// Blocks up to this size are filled with a pattern that exposes uses of uninitialised memory.
const POISON_LIMIT_BYTES: usize = 1 << 20;
const POISON: u8 = 0xcb;

/// Page-aligned memory. Dropping it does not free it: a program that forgot to free it may still
/// hold its address.
#[derive(Debug)]
pub(crate) struct PinnedAlloc {
    start: NonNull<u8>,
    layout: Layout,
    range: HostBytes,
}

// SAFETY: it owns its memory, which any thread may use.
unsafe impl Send for PinnedAlloc {}

impl PinnedAlloc {
    /// Allocates; `None` if memory is exhausted or `bytes` is 0.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        // One page more, with a small alignment: the system zeroes such memory lazily, but not
        // memory of a large alignment.
        let total = bytes.checked_add(PAGE_BYTES)?;
        let layout = Layout::from_size_align(total, 16).ok()?;
        if bytes == 0 {
            return None;
        }
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = start.addr().get().wrapping_neg() % PAGE_BYTES;
        // SAFETY: `skip` is less than the additional page.
        let base = unsafe { start.add(skip) };
        // SAFETY: `bytes` from `base` are inside the allocation and initialised.
        let range = unsafe { HostBytes::new(base, bytes) };
        if bytes <= POISON_LIMIT_BYTES {
            range.write(0, &vec![POISON; bytes]);
        }
        Some(Self {
            start,
            layout,
            range,
        })
    }

    /// The usable range.
    pub(crate) fn range(&self) -> HostBytes {
        self.range
    }

    /// Frees the memory.
    pub(crate) fn free(self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout. `self` is consumed, so this
        // happens once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
