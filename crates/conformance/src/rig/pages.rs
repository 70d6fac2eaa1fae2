//! Ordinary host memory with a chosen place in its page.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use pinlane_driver::HostPtr;

/// What the cases take for a page. Larger real pages only make a range less aligned.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Zeroed pageable memory that starts on a page.
pub(crate) struct Pages {
    base: HostPtr,
    layout: Layout,
}

// SAFETY: the memory is owned by the value alone, as a `Box<[u8]>` owns its own.
unsafe impl Send for Pages {}

impl Pages {
    pub(crate) fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), PAGE_BYTES).expect("a size that fits memory");
        // SAFETY: the layout has a size of at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        let base = HostPtr::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }

    pub(crate) fn base(&self) -> HostPtr {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
