//! Pinned memory for the CPU to write and the GPU to read.

use std::fmt;

use bytemuck::Pod;
use pinlane_driver::HostFlags;

use super::buffer_macros::{borrowed_by_scopes, pinned_source, pinned_target};
use super::{PinnedBuf, PinnedSlice};
use crate::{Device, Result};

/// Write-combined pinned memory. It is not cached, so writing it evicts nothing, but reading it on the CPU
/// is extremely slow. Therefore this type cannot be read:
///
/// ```compile_fail
/// # fn example(buffer: &pinlane::WriteCombinedBuf<u8>) -> u8 {
/// buffer[0] // no view for reading: does not compile
/// # }
/// ```
pub struct WriteCombinedBuf<T> {
    memory: PinnedBuf<T>,
}

impl Device {
    /// Allocates write-combined memory for `len` elements. Their values are unspecified.
    pub fn write_combined<T: Pod>(&self, len: usize) -> Result<WriteCombinedBuf<T>> {
        let flags = HostFlags {
            write_combined: true,
            ..HostFlags::default()
        };
        let memory = PinnedBuf::allocate(&self.shared.core, len, flags)?;
        Ok(WriteCombinedBuf { memory })
    }
}

impl<T: Pod> WriteCombinedBuf<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw().len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes `values` at element `at`.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&mut self, at: usize, values: &[T]) {
        let end = at.checked_add(values.len()).expect("range overflows");
        assert!(
            end <= self.len(),
            "elements {at}..{end} of a buffer of {}",
            self.len()
        );
        // SAFETY: the range was checked; `values` cannot overlap this memory, which has no other view.
        unsafe {
            let target = self.raw().start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len());
        }
    }

    /// Writes `value` to every element, front to back.
    pub fn fill(&mut self, value: T) {
        let raw = self.raw();
        if size_of::<T>() == 0 {
            return; // nothing to write, but perhaps `usize::MAX` times
        }
        for at in 0..raw.len {
            // SAFETY: `at` is in bounds.
            unsafe { raw.start.add(at).write(value) };
        }
    }
}

pinned_source!(WriteCombinedBuf<T>, T, [T: Pod + Send]);
borrowed_by_scopes!(WriteCombinedBuf<T>, T, [T: Pod + Send]);

impl<T> WriteCombinedBuf<T> {
    fn raw(&self) -> PinnedSlice<'_, T> {
        self.memory.raw()
    }
}

impl<T: Pod + Send> WriteCombinedBuf<T> {
    /// Converts to a target for downloads, which is rarely needed.
    #[must_use]
    pub fn into_sink(self) -> WriteCombinedSink<T> {
        WriteCombinedSink(self)
    }
}

/// Write-combined memory that downloads may write to.
///
/// The CPU can only send it on. For measurements, and to pass bytes from one device to another.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// # let mut source = device.alloc::<u8>(64)?;
/// # let mut target = device.alloc::<u8>(64)?;
/// # stream.copy_to_device(&[7; 64], &mut source)?;
/// let sink = device.write_combined(64)?.into_sink();
/// let sink = stream.download(&source, sink)?.wait()?;
/// let sink = stream.upload(sink, &mut target)?.wait()?;
/// # assert_eq!(stream.copy_to_vec(&target)?, [7; 64]);
/// # drop(sink);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WriteCombinedSink<T>(WriteCombinedBuf<T>);

impl<T: Pod + Send> WriteCombinedSink<T> {
    /// Converts back to a buffer that the CPU can write.
    #[must_use]
    pub fn into_inner(self) -> WriteCombinedBuf<T> {
        self.0
    }

    fn raw(&self) -> PinnedSlice<'_, T> {
        self.0.raw()
    }
}

pinned_source!(WriteCombinedSink<T>, T, [T: Pod + Send]);
pinned_target!(WriteCombinedSink<T>, T, [T: Pod + Send]);

impl<T> fmt::Debug for WriteCombinedBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteCombinedBuf")
            .field("len", &self.raw().len)
            .finish_non_exhaustive()
    }
}
