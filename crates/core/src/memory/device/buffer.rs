//! A device buffer, and ways to get one.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{DeviceMemory, DeviceRegion, DeviceSlice, DeviceSliceMut, Owner};
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::memory::{Part, bytes_of, resolve};
use crate::stream::SubmitError;
use crate::{Device, Result, Stream};

/// A buffer in device memory.
///
/// It tracks the last writer and all readers since for each range, so work on another stream waits for
/// exactly what it must. Dropping it never blocks: the memory is freed once its last use is done.
pub struct DeviceBuf<T> {
    region: DeviceRegion,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Pod> DeviceBuf<T> {
    pub(crate) fn new(shared: &Arc<Shared>, memory: DeviceMemory, len: usize) -> Self {
        Self {
            region: DeviceRegion::new(shared, memory),
            len,
            elements: PhantomData,
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first element, for kernels and other libraries. Their accesses are not tracked,
    /// except by [`ready_on`](DeviceSlice::ready_on) and [`used_on`](DeviceSlice::used_on), and
    /// must be done before the buffer is dropped: its memory may then be reused for the next buffer (see
    /// [`Device::keep_device_memory`](crate::Device::keep_device_memory)).
    /// [`Device::release_when_idle`](crate::Device::release_when_idle) drops it in time.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.ptr()
    }

    /// A sub-range to write while others of the same buffer are. The ledger orders those that overlap.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[doc(hidden)]
    pub fn shared_range_mut(&self, range: Range<usize>) -> DeviceSliceMut<'_, T> {
        let range = resolve(range, self.len);
        DeviceSliceMut::new(&self.region, range.start, range.len())
    }

    /// Whether there is earlier work on the buffer that can never be waited for.
    #[doc(hidden)]
    pub fn is_stranded(&self) -> bool {
        self.region.is_stranded()
    }

    /// The whole buffer, for reading.
    #[must_use]
    pub fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(&self.region, 0, self.len)
    }

    /// The whole buffer, for writing.
    #[must_use]
    pub fn whole_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&self.region, 0, self.len)
    }

    /// An owned sub-range, for code that returns buffers. [`Part::into_whole`] undoes it.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn part(self, range: impl RangeBounds<usize>) -> Part<Self> {
        let len = self.len;
        Part::of_len(self, len, range)
    }

    /// A sub-range for reading.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.whole().range(range)
    }

    /// A sub-range for writing.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        self.whole_mut().range(range)
    }
}

impl Device {
    /// Allocates device memory for `len` elements. Their values are unspecified. A full device first waits for
    /// what is [about to be released](Self::release_when_idle).
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        let (core, bytes) = (&self.shared.core, bytes_of::<T>(len)?);
        self.shared.deferred.reclaim();
        let memory = core.or_after_releases(|| Ok(DeviceMemory::plain(core, bytes)?))?;
        Ok(DeviceBuf::new(&self.shared, memory, len))
    }
}

impl Stream {
    /// Allocates device memory for `len` elements in stream order. Faster than [`Device::alloc`], and
    /// usable on other streams too. The values are unspecified.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        let shared = self.shared();
        if !shared.core.driver.info().stream_ordered_alloc {
            return Device {
                shared: Arc::clone(shared),
            }
            .alloc(len);
        }
        shared.deferred.reclaim();
        // Not inside the submission: what is released may wait for the stream's turn.
        shared.core.or_after_releases(|| self.alloc_in_order(len))
    }

    fn alloc_in_order<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        let shared = self.shared();
        let bytes = bytes_of::<T>(len)?;
        let mut memory = None;
        let submitted = self.submit(&[], |_, _| {
            memory = Some(DeviceMemory::ordered(self.live(), bytes)?);
            Ok(())
        });
        let fence = match submitted {
            Ok(fence) => fence,
            Err(SubmitError::Refused(error)) => return Err(error),
            Err(SubmitError::Stranded(error)) => {
                // There is no way to tell when it could be freed.
                std::mem::forget(memory);
                return Err(error);
            }
        };
        let memory = memory.expect("allocated by the submission");
        let mut buffer = DeviceBuf::new(shared, memory, len);
        // Other streams must wait until this stream has reached the allocation.
        let access = buffer.whole_mut().touch().access(self.id());
        buffer.region.ledger().record(access, fence);
        Ok(buffer)
    }
}

/// For memory of another library.
impl<T: Pod> DeviceBuf<T> {
    /// Takes over device memory of another library. Dropping the buffer drops `owner` once the last use is
    /// done, which frees the memory; on an error it is dropped at once. It must not keep this device open, as a
    /// [`Device`] or a [`Stream`] does: a buffer that is dropped in flight would then keep the device for good.
    /// Memory that is only lent is a [`LentBuf`](crate::interop::LentBuf).
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("h200")?;
    /// # let theirs = device.alloc::<u8>(4096)?; // stands for memory of another library
    /// # let (address, owner) = (theirs.device_ptr(), ());
    /// use pinlane::DeviceBuf;
    ///
    /// // SAFETY: `owner` has 1024 floats at this address, and nothing else uses them.
    /// let mut buffer = unsafe { DeviceBuf::<f32>::from_raw(&device, address, 1024, owner) }?;
    /// device.stream()?.copy_to_device(&[1.0; 1024], &mut buffer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the size in bytes does not fit the address space.
    ///
    /// # Safety
    /// The memory belongs to `device`, holds `len` aligned elements, stays valid until `owner` is dropped, and has
    /// no other user until then. Work of others on it is done.
    pub unsafe fn from_raw(
        device: &Device,
        ptr: DevicePtr,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Result<Self> {
        let core = &device.shared.core;
        let memory = DeviceMemory::foreign(core, ptr, bytes_of::<T>(len)?, Box::new(owner));
        Ok(Self::new(&device.shared, memory, len))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.region.shared
    }

    #[cfg(feature = "cudarc")]
    pub(crate) fn owner_mut(&mut self) -> Option<&mut Owner> {
        self.region.memory.owner_mut()
    }

    /// Gives up the memory. The caller has ordered the owner's later work behind all uses so far.
    pub(crate) fn take_owner(&mut self) -> Option<Owner> {
        let owner = self.region.memory.take_owner()?;
        self.region.forget_uses();
        Some(owner)
    }

    /// Fences of all uses; `None` if some use cannot be waited for.
    pub(crate) fn uses(&self) -> Option<Vec<DeviceFence>> {
        (!self.is_stranded()).then(|| self.region.ledger().fences().cloned().collect())
    }

    /// Makes every use on other streams wait for `fence`, which is on one of the owner's streams.
    pub(crate) fn used_by_owner_until(&mut self, stream: u64, fence: DeviceFence) {
        let access = self.whole_mut().touch().access(stream);
        self.region.ledger().record(access, fence);
    }
}

impl<T> fmt::Debug for DeviceBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuf")
            .field("ptr", &self.region.ptr())
            .field("len", &self.len)
            .finish()
    }
}
