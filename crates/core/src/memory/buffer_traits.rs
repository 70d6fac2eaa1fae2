//! The contract for buffers to take part in a transfer.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;

use crate::device_core::DeviceCore;
use crate::{Error, Result, Sealed};

/// Page-locked memory that an asynchronous copy may read.
///
/// The buffers of this crate implement it. `Vec` and slices do not, so an asynchronous copy from pageable
/// memory does not compile.
///
/// # Safety
/// `start()` points to `len()` elements of page-locked, initialised memory. Until the value is
/// dropped they stay valid, at the same address wherever the value is moved, and nothing writes to
/// them except through `&mut` access to the value.
#[diagnostic::on_unimplemented(
    message = "an asynchronous copy cannot read `{Self}`: it is not pinned memory",
    label = "not pinned",
    note = "copy ordinary memory with `stream.copy_to_device(&source, &mut target)`, which returns when it is done",
    note = "or copy it into pinned memory first: `source.to_pinned(&device)`",
    note = "or page-lock it in place: `device.register(source)`, and `scope.register(&mut source)` for a slice"
)]
pub unsafe trait PinnedSource<T: Pod>: Sealed + Send + 'static {
    /// Pointer to the first element.
    fn start(&self) -> *const T;

    /// Number of elements.
    fn len(&self) -> usize;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device the memory was pinned for.
    fn pinned_for(&self) -> PinnedFor<'_>;
}

/// Page-locked memory that an asynchronous copy may write.
///
/// # Safety
/// As for [`PinnedSource`]. In addition, `start_mut()` equals `start()` and may be used to write, and
/// nothing else reads or writes the memory except through access to the value.
#[diagnostic::on_unimplemented(
    message = "an asynchronous copy cannot write to `{Self}`: it is not writable pinned memory",
    label = "not pinned, or read-only",
    note = "copy into ordinary memory with `stream.copy_to_host(&source, &mut target)`, which returns when it is done",
    note = "or download into pinned memory: `device.pinned(len)`",
    note = "or page-lock the target in place: `device.register(target)`, and `scope.register(&mut target)` for a slice"
)]
pub unsafe trait PinnedTarget<T: Pod>: PinnedSource<T> {
    /// Pointer to the first element.
    fn start_mut(&mut self) -> *mut T;
}

/// The device memory was pinned for, and whether other devices may use it.
#[derive(Clone, Copy)]
pub struct PinnedFor<'a> {
    pub(crate) core: &'a Arc<DeviceCore>,
    pub(crate) portable: bool,
}

impl PinnedFor<'_> {
    /// Checks that a stream of the device behind `core` may use the memory.
    pub(crate) fn check_usable_by(self, core: &Arc<DeviceCore>) -> Result<()> {
        if Arc::ptr_eq(self.core, core) {
            return Ok(());
        }
        if !self.portable {
            Err(Error::NotPortable)
        } else if self.core.driver.pin_domain() != core.driver.pin_domain() {
            // Memory pinned by one driver is pageable to the other.
            Err(Error::WrongDevice)
        } else {
            Ok(())
        }
    }

    /// Checks that the memory belongs to this device, for device-specific addresses.
    pub(crate) fn check_same_device(self, core: &Arc<DeviceCore>) -> Result<()> {
        let same = Arc::ptr_eq(self.core, core);
        same.then_some(()).ok_or(Error::WrongDevice)
    }
}

impl fmt::Debug for PinnedFor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedFor")
            .field("device", &self.core.driver.info().name)
            .field("portable", &self.portable)
            .finish()
    }
}
