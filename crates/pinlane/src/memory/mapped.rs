//! Pinned memory that kernels see, too.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use pinlane_driver::{DevicePtr, HostFlags};

use super::host::HostMemory;
use super::{Home, PinnedSource, PinnedTarget};
use crate::{Device, Error, Result};

/// Pinned memory with an address for kernels, which read and write it over the link.
///
/// While a kernel may use it, give it to [`Stream::hold`](crate::Stream::hold), which gives it
/// back when the stream has got that far.
pub struct MappedBuf<T> {
    memory: HostMemory<T>,
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
        let memory = HostMemory::<T>::allocate(&self.shared.link, len, flags)?;
        let device_ptr = if len * size_of::<T>() == 0 {
            DevicePtr(0)
        } else {
            self.shared.link.driver.host_device_ptr(memory.host_ptr())?
        };
        Ok(MappedBuf { memory, device_ptr })
    }
}

impl<T> MappedBuf<T> {
    /// The address under which kernels see the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.device_ptr
    }
}

impl<T> Deref for MappedBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements, aligned; kernels that write it are launched under an
        // unsafe contract that excludes reading it meanwhile.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr(), self.memory.len()) }
    }
}

impl<T> DerefMut for MappedBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other access by the host.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().as_ptr(), self.memory.len()) }
    }
}

// SAFETY: the memory comes from `host_alloc`, does not move with the value, and is reached through
// the value only.
unsafe impl<T: Pod + Send> PinnedSource<T> for MappedBuf<T> {
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

// SAFETY: as above; it is ordinary writable memory.
unsafe impl<T: Pod + Send> PinnedTarget<T> for MappedBuf<T> {
    fn start_mut(&mut self) -> *mut T {
        self.memory.start().as_ptr()
    }
}

impl<T: fmt::Debug> fmt::Debug for MappedBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
