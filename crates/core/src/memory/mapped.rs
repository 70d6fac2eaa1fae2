//! Pinned memory that kernels can access.

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, HostFlags};

use super::buffer_macros::slice_like;
use super::{PinnedBuf, PinnedSlice};
use crate::{Device, Error, Result};

/// Pinned memory with a device address. Kernels read and write it over the link.
///
/// While a kernel may use it, hand it to [`Stream::hold`](crate::Stream::hold), which returns it once the
/// stream's work so far is done. Launching a kernel that writes it is unsafe; that contract rules out
/// reading it at the same time.
pub struct MappedBuf<T> {
    buffer: PinnedBuf<T>,
    device_ptr: DevicePtr,
}

impl Device {
    /// Allocates mapped memory for `len` elements. Their values are unspecified.
    pub fn mapped<T: Pod>(&self, len: usize) -> Result<MappedBuf<T>> {
        if !self.info().can_map_host {
            return Err(Error::NotMapped);
        }
        let flags = HostFlags {
            mapped: true,
            ..HostFlags::default()
        };
        let buffer = PinnedBuf::<T>::allocate(&self.shared.core, len, flags)?;
        let device_ptr = match size_of_val(&buffer[..]) {
            0 => DevicePtr(0),
            _ => self.driver().host_device_ptr(buffer.raw().start.cast())?,
        };
        Ok(MappedBuf { buffer, device_ptr })
    }
}

impl<T> MappedBuf<T> {
    /// Device address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.device_ptr
    }

    fn raw(&self) -> PinnedSlice<'_, T> {
        self.buffer.raw()
    }
}

slice_like!(MappedBuf<T>, T, [T], [T], [T: Pod + Send], [T: Pod + Send]);
