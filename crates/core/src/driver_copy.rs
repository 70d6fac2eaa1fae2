//! The driver's own copies, and work on device memory only.

use std::ptr::NonNull;

use bytemuck::Pod;
use pinlane_driver::{CopyOp, DevicePtr, Driver, Place, StreamHandle};

use crate::memory::{DeviceSlice, DeviceSliceMut};
use crate::{Error, Result, Stream};

impl Stream {
    /// Copies any memory, pinned or not, to the device with the driver's own copy, and returns when it is
    /// done. [`copy_to_device`](Self::copy_to_device) is several times as fast for pageable memory; this is
    /// the baseline to compare it with.
    pub fn driver_copy_to_device<'a, T: Pod>(
        &self,
        source: &[T],
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<()> {
        let target = target.into();
        same_len(source.len(), target.len())?;
        let copy =
            Direction::Upload.copy(source.as_ptr(), target.device_ptr(), size_of_val(source));
        // SAFETY: both sides hold that many bytes, and the source is borrowed until the copy is done,
        // since this returns only then.
        let enqueue = unsafe { enqueue(copy) };
        self.submit_borrowed_and_drain(&[target.touch()], enqueue)
    }

    /// Copies device memory into any memory, pinned or not, with the driver's own copy, and returns when it
    /// is done. [`copy_to_host`](Self::copy_to_host) is several times as fast for pageable memory; this is
    /// the baseline to compare it with.
    pub fn driver_copy_to_host<'a, T: Pod>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: &mut [T],
    ) -> Result<()> {
        let source = source.into();
        same_len(source.len(), target.len())?;
        let bytes = size_of_val(target);
        let copy = Direction::Download.copy(target.as_mut_ptr(), source.device_ptr(), bytes);
        // SAFETY: as in `driver_copy_to_device`; the target is borrowed exclusively.
        let enqueue = unsafe { enqueue(copy) };
        self.submit_borrowed_and_drain(&[source.touch()], enqueue)
    }

    /// Copies from device memory to device memory, in stream order.
    pub fn copy_on_device<'a, 'b, T: Pod>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: impl Into<DeviceSliceMut<'b, T>>,
    ) -> Result<()> {
        let (source, target) = (source.into(), target.into());
        same_len(source.len(), target.len())?;
        let copy = CopyOp {
            source: Place::Device(source.device_ptr()),
            target: Place::Device(target.device_ptr()),
            bytes: source.len() * size_of::<T>(),
        };
        // SAFETY: both sides hold that many bytes and are kept by their ledgers; a mutable slice never
        // overlaps another slice.
        let enqueue = unsafe { enqueue(copy) };
        self.submit(&[source.touch(), target.touch()], enqueue)?;
        Ok(())
    }

    /// Sets every byte of device memory to `value`, in stream order.
    pub fn fill_bytes<'a, T: Pod>(
        &self,
        target: impl Into<DeviceSliceMut<'a, T>>,
        value: u8,
    ) -> Result<()> {
        let target = target.into();
        let bytes = target.len() * size_of::<T>();
        self.submit(&[target.touch()], |driver, stream| match bytes {
            0 => Ok(()),
            // SAFETY: the target holds that many bytes and is kept by its ledger.
            _ => unsafe { driver.memset_async(target.device_ptr(), value, bytes, stream) },
        })?;
        Ok(())
    }
}

pub(crate) fn same_len(source_len: usize, target_len: usize) -> Result<()> {
    match source_len == target_len {
        true => Ok(()),
        false => Err(Error::LengthMismatch {
            source_len,
            target_len,
        }),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Upload,
    Download,
}

impl Direction {
    /// A copy between host and device.
    pub(crate) fn copy<T>(self, host: *const T, device: DevicePtr, bytes: usize) -> CopyOp {
        let host = NonNull::new(host.cast_mut().cast()).expect("host memory is never at 0");
        let (host, device) = (Place::Host(host), Place::Device(device));
        let (source, target) = match self {
            Self::Upload => (host, device),
            Self::Download => (device, host),
        };
        CopyOp {
            source,
            target,
            bytes,
        }
    }
}

/// Submits a copy, unless it is empty.
///
/// # Safety
/// As for [`Driver::copy_async`], when the result is called.
pub(crate) unsafe fn enqueue(
    copy: CopyOp,
) -> impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()> {
    move |driver, stream| match copy.bytes {
        0 => Ok(()),
        // SAFETY: the caller's.
        _ => unsafe { driver.copy_async(copy, stream) },
    }
}
