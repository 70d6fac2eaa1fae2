//! Real memory behind pinned allocations.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::host_bytes::HostBytes;

/// Pinned memory begins on a page.
const PAGE_BYTES: usize = 4096;
/// Blocks up to this size are filled with a pattern, so that use of unset memory shows.
const POISON_LIMIT_BYTES: usize = 1 << 20;
const POISON: u8 = 0xcb;

/// Page-aligned memory that stays where it is. Not freed when dropped: a program that forgot to
/// free it may still hold its address.
#[derive(Debug)]
pub(crate) struct PinnedAlloc {
    start: NonNull<u8>,
    layout: Layout,
    range: HostBytes,
}

// SAFETY: it owns its memory, which is bound to no thread.
unsafe impl Send for PinnedAlloc {}

impl PinnedAlloc {
    /// Allocates; `None` when there is no memory, or no bytes are asked for.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        // A page more, of small alignment, is zeroed lazily by the system; aligned memory is not.
        let total = bytes.checked_add(PAGE_BYTES)?;
        let layout = Layout::from_size_align(total, 16).ok()?;
        if bytes == 0 {
            return None;
        }
        // SAFETY: the layout has a size above 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = start.addr().get().wrapping_neg() % PAGE_BYTES;
        // SAFETY: `skip` is below the page that was allocated beyond `bytes`.
        let base = unsafe { start.add(skip) };
        // SAFETY: `bytes` from `base` on are inside the allocation and initialised.
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

    /// Gives the memory back to the system.
    pub(crate) fn free(self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout; `self` is consumed, so this
        // happens once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
