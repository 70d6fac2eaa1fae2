//! Pinned host memory that somebody else owns.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::device_core::DeviceCore;
use crate::memory::{PinnedFor, PinnedSource, PinnedTarget};
use crate::{Device, Sealed};

/// Pinned host memory of another owner, such as a NumPy array in pinned memory, as the source or target of an
/// asynchronous copy. The transfer keeps the owner until the copy is done.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("h200")?;
/// # let mut on_device = device.alloc::<u8>(4096)?;
/// use pinlane::interop::LentPinned;
///
/// let mut array = device.pinned_from(&[7u8; 4096])?; // stands for memory of another library
/// let start = array.as_mut_ptr();
/// // SAFETY: `array` has 4096 bytes of pinned memory there, and nobody changes them during the copy.
/// let lent = unsafe { LentPinned::new(&device, start, 4096, array) };
/// let transfer = device.stream()?.upload(lent, &mut on_device)?;
/// drop(transfer); // the array is dropped when the copy is done
/// # Ok(())
/// # }
/// ```
pub struct LentPinned {
    start: NonNull<u8>,
    len: usize,
    core: Arc<DeviceCore>,
    /// Dropped last.
    _owner: Box<dyn Any + Send>,
}

// SAFETY: the pointer is to memory that the owner keeps, and the owner is `Send`.
unsafe impl Send for LentPinned {}

impl LentPinned {
    /// Wraps `len` bytes at `start`, which stay as they are until `owner` is dropped. The owner must not keep this
    /// device open, as a [`Device`] or a [`Stream`](crate::Stream) does.
    ///
    /// # Safety
    /// The memory is page-locked for `device`, is initialised, and stays valid until `owner` is dropped. Until the
    /// transfer is done nothing writes to it, and if it is the target of the transfer, nothing reads it.
    pub unsafe fn new(
        device: &Device,
        start: *mut u8,
        len: usize,
        owner: impl Send + 'static,
    ) -> Self {
        Self {
            start: NonNull::new(start).unwrap_or(NonNull::dangling()),
            len,
            core: Arc::clone(&device.shared.core),
            _owner: Box::new(owner),
        }
    }
}

impl Sealed for LentPinned {}

// SAFETY: by the contract of `new`.
unsafe impl PinnedSource<u8> for LentPinned {
    fn start(&self) -> *const u8 {
        self.start.as_ptr()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn pinned_for(&self) -> PinnedFor<'_> {
        PinnedFor {
            core: &self.core,
            portable: false,
        }
    }
}

// SAFETY: by the contract of `new`.
unsafe impl PinnedTarget<u8> for LentPinned {
    fn start_mut(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl fmt::Debug for LentPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LentPinned")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
