//! Pinned memory for the CPU to write and the GPU to read.

use std::fmt;

use bytemuck::Pod;
use pinlane_driver::HostFlags;

use super::host::HostMemory;
use super::{Home, PinnedSource};
use crate::{Device, Result};

/// Write-combined pinned memory: not cached, so that writing it does not evict what is, and
/// reading it on the CPU is slower than anything else. Hence there is no way to read it here.
///
/// ```compile_fail
/// # fn example(buffer: &pinlane::WriteCombinedBuf<u8>) -> u8 {
/// buffer[0] // no view for reading: does not compile
/// # }
/// ```
pub struct WriteCombinedBuf<T> {
    memory: HostMemory<T>,
}

impl Device {
    /// Write-combined memory for `len` elements. Their values are unspecified.
    pub fn write_combined<T: Pod>(&self, len: usize) -> Result<WriteCombinedBuf<T>> {
        let flags = HostFlags {
            write_combined: true,
            ..HostFlags::default()
        };
        let memory = HostMemory::allocate(&self.shared.link, len, flags)?;
        Ok(WriteCombinedBuf { memory })
    }
}

impl<T: Pod> WriteCombinedBuf<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Write `values` at element `at`.
    ///
    /// # Panics
    /// When they do not fit.
    pub fn write(&mut self, at: usize, values: &[T]) {
        let end = at.checked_add(values.len()).expect("range overflows");
        assert!(
            end <= self.len(),
            "elements {at}..{end} of a buffer of {}",
            self.len()
        );
        // SAFETY: the range was checked; `values` cannot overlap memory that has no other view.
        unsafe {
            let target = self.memory.start().as_ptr().add(at);
            std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len());
        }
    }

    /// Write `value` to every element, front to back.
    pub fn fill(&mut self, value: T) {
        for at in 0..self.len() {
            // SAFETY: `at` is inside.
            unsafe { self.memory.start().as_ptr().add(at).write(value) };
        }
    }
}

// SAFETY: the memory comes from `host_alloc`, does not move with the value, and is reached through
// the value only.
unsafe impl<T: Pod + Send> PinnedSource<T> for WriteCombinedBuf<T> {
    fn start(&self) -> *const T {
        self.memory.start().as_ptr()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn home(&self) -> Home<'_> {
        self.memory.home()
    }
}

impl<T> fmt::Debug for WriteCombinedBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteCombinedBuf")
            .field("len", &self.memory.len())
            .finish_non_exhaustive()
    }
}
