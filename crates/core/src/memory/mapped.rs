//! Pinned memory that kernels can access.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, HostFlags};

use super::buffer_traits::slice_like;
use super::{PinnedBuf, PinnedFor, PinnedSource, PinnedTarget};
use crate::{Device, Error, Result};

/// Pinned memory with a device address. Kernels read and write it over the link.
///
/// While a kernel may use it, hand it to [`Stream::hold`](crate::Stream::hold), which returns it once the
/// stream's work so far is done.
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
        let device_ptr = if size_of_val(&buffer[..]) == 0 {
            DevicePtr(0)
        } else {
            self.driver().host_device_ptr(buffer.host_ptr())?
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
}

slice_like!(MappedBuf);

/// Launching a kernel that writes this memory is unsafe; its contract rules out reading at the same time.
impl<T> Deref for MappedBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.buffer
    }
}

impl<T> DerefMut for MappedBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer
    }
}

// SAFETY: as for the pinned memory inside, which is only reachable through the value.
unsafe impl<T: Pod + Send> PinnedSource<T> for MappedBuf<T> {
    fn start(&self) -> *const T {
        self.buffer.start()
    }

    fn len(&self) -> usize {
        self.buffer.len()
    }

    fn pinned_for(&self) -> PinnedFor<'_> {
        self.buffer.pinned_for()
    }
}

// SAFETY: as above.
unsafe impl<T: Pod + Send> PinnedTarget<T> for MappedBuf<T> {
    fn start_mut(&mut self) -> *mut T {
        self.buffer.start_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for MappedBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
