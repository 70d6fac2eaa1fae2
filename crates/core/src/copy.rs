//! The driver's own copies, and work on device memory only.

use bytemuck::Pod;
use pinlane_driver::{CopyOp, Place};

use crate::memory::{DeviceSlice, DeviceSliceMut};
use crate::transfer::{copy_unless_empty, host_ptr, same_len};
use crate::{Result, Stream};

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
        let copy = CopyOp {
            source: Place::Host(host_ptr(source.as_ptr())),
            target: Place::Device(target.device_ptr()),
            bytes: size_of_val(source),
        };
        self.submit_borrowed_and_drain(&[target.touch()], |driver, stream| {
            // SAFETY: both sides hold that many bytes, and the source is borrowed until the copy is done,
            // since this returns only then.
            unsafe { copy_unless_empty(driver, copy, stream) }
        })
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
        let copy = CopyOp {
            source: Place::Device(source.device_ptr()),
            target: Place::Host(host_ptr(target.as_mut_ptr())),
            bytes: size_of_val(target),
        };
        self.submit_borrowed_and_drain(&[source.touch()], |driver, stream| {
            // SAFETY: as in `driver_copy_to_device`; the target is borrowed exclusively.
            unsafe { copy_unless_empty(driver, copy, stream) }
        })
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
        self.submit(&[source.touch(), target.touch()], |driver, stream| {
            // SAFETY: both sides hold that many bytes and are kept by their ledgers; a mutable slice never
            // overlaps another slice.
            unsafe { copy_unless_empty(driver, copy, stream) }
        })?;
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
