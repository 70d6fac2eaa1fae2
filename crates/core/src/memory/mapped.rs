//! Pinned memory that kernels see, too.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, HostFlags};

use super::buffer_traits::slice_like;
use super::{PinnedBuf, PinnedFor, PinnedSource, PinnedTarget};
use crate::{Device, Error, Result};

/// Pinned memory with an address for kernels, which read and write it over the link.
///
/// While a kernel may use it, give it to [`Stream::hold`](crate::Stream::hold), which gives it
/// back when the stream has got that far.
pub struct MappedBuf<T> {
    buffer: PinnedBuf<T>,
    device_ptr: DevicePtr,
}

impl Device {
    /// Mapped memory for `len` elements. Their values are unspecified.
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
    /// The address under which kernels see the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.device_ptr
    }
}

slice_like!(MappedBuf);

/// Kernels that write it are launched under an unsafe contract that excludes reading it meanwhile.
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

// SAFETY: as for the pinned memory inside, which is reached through the value only.
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
