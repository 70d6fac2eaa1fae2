//! What a buffer must promise to be the end of a transfer.

use std::sync::Arc;

use bytemuck::Pod;

use crate::device_core::DeviceCore;
use crate::{Error, Result};

/// Page-locked memory that an asynchronous copy may read.
///
/// Implemented by the buffers of this crate; there is none for `Vec` or slices, which is why an
/// asynchronous copy from pageable memory does not compile.
///
/// # Safety
/// `start()` points to `len()` elements of page-locked, initialised memory. Until the value is
/// dropped they stay valid, at the same address wherever the value is moved, and nobody writes to
/// them except through `&mut` access to the value.
pub unsafe trait PinnedSource<T: Pod>: Send + 'static {
    /// The first element.
    fn start(&self) -> *const T;

    /// Number of elements.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that the memory was pinned for.
    fn pinned_for(&self) -> PinnedFor<'_>;
}

/// Page-locked memory that an asynchronous copy may write.
///
/// # Safety
/// As for [`PinnedSource`], and the memory may be written through `start_mut()`, which is
/// `start()`; nobody else reads or writes it except through access to the value.
pub unsafe trait PinnedTarget<T: Pod>: PinnedSource<T> {
    /// The first element.
    fn start_mut(&mut self) -> *mut T;
}

/// The device that memory was pinned for, and whether others may use it.
#[derive(Clone, Copy)]
pub struct PinnedFor<'a> {
    pub(crate) core: &'a Arc<DeviceCore>,
    pub(crate) portable: bool,
}

impl PinnedFor<'_> {
    /// Whether a stream of the device behind `core` may use the memory.
    pub(crate) fn check_usable_by(self, core: &Arc<DeviceCore>) -> Result<()> {
        if Arc::ptr_eq(self.core, core) {
            return Ok(());
        }
        if !self.portable {
            Err(Error::NotPortable)
        } else if self.core.driver.pin_domain() != core.driver.pin_domain() {
            // Pinned for one driver is pageable to the other.
            Err(Error::WrongDevice)
        } else {
            Ok(())
        }
    }

    /// Whether the memory was got from this device, for addresses that are its own.
    pub(crate) fn check_same_device(self, core: &Arc<DeviceCore>) -> Result<()> {
        match Arc::ptr_eq(self.core, core) {
            true => Ok(()),
            false => Err(Error::WrongDevice),
        }
    }
}
