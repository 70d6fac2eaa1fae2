//! Device memory that another library lends.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{wait_for_all, wait_on_host};
use crate::memory::{DeviceMemory, bytes_of};
use crate::submit::abort_on_unwind;
use crate::{DeviceBuf, DeviceSlice, DeviceSliceMut, Error, Result, Stream};

/// Device memory of another library, such as a PyTorch tensor, lent for a while. Its owner goes on using it on
/// a stream of its own, the lender.
///
/// Uses here wait for everything that the lender was given before. When the memory is returned, the lender's
/// later work waits for those uses. The host waits for neither.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("h200")?;
/// # let tensor = device.alloc::<f32>(1024)?; // stands for memory of another library
/// # let (address, current_stream) = (tensor.device_ptr(), 0);
/// use pinlane::{Stream, interop::LentBuf};
///
/// // SAFETY: the other library's current stream, and a tensor of 1024 floats that it uses there.
/// let mut lent = unsafe {
///     let lender = Stream::from_raw(&device, current_stream);
///     LentBuf::<f32>::new(&lender, address, 1024)?
/// };
/// device.stream()?.copy_to_device(&[1.0; 1024], lent.whole_mut())?;
/// lent.give_back()?; // what the other library submits from here on sees the bytes
/// # Ok(())
/// # }
/// ```
pub struct LentBuf<T: Pod> {
    buffer: DeviceBuf<T>,
    lender: Stream,
    is_lent: bool,
}

impl<T: Pod> LentBuf<T> {
    /// Borrows `len` elements at `ptr`, which their owner uses on the stream `lender`.
    ///
    /// # Errors
    /// The driver's error, or if the lender is being captured into a graph.
    ///
    /// # Safety
    /// The memory belongs to the lender's device, holds `len` aligned elements and stays valid until the result is
    /// returned or dropped, which must happen (`mem::forget` leaves the owner without a wait). Until then
    /// nothing else uses it. Earlier and later work of the owner on it is on the lender, or ordered with it.
    pub unsafe fn new(lender: &Stream, ptr: DevicePtr, len: usize) -> Result<Self> {
        let shared = lender.shared();
        let bytes = bytes_of::<T>(len)?;
        let fence = lender.submit(&[], |_, _| Ok(()))?;
        let memory = DeviceMemory::foreign(&shared.core, ptr, bytes, Box::new(()));
        let mut buffer = DeviceBuf::new(shared, memory, len);
        buffer.used_by_owner_until(lender.id(), fence);
        Ok(Self {
            buffer,
            lender: lender.clone(),
            is_lent: true,
        })
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// All of it, for reading.
    #[must_use]
    pub fn whole(&self) -> DeviceSlice<'_, T> {
        self.buffer.whole()
    }

    /// All of it, for writing.
    #[must_use]
    pub fn whole_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.buffer.whole_mut()
    }

    /// A sub-range for reading.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.buffer.range(range)
    }

    /// A sub-range for writing.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        self.buffer.range_mut(range)
    }

    /// Returns the memory: later work on the lender waits for all uses here. Dropping does the same, but
    /// cannot return an error. Not while the lender is being captured into a graph.
    ///
    /// # Errors
    /// If the lender could not be made to wait. The host has waited instead, so the memory may be used.
    pub fn give_back(mut self) -> Result<()> {
        self.end(None)
    }

    /// Returns the memory to an owner that goes on with it on another stream: later work on `stream`, and on
    /// the lender, waits for all uses here.
    ///
    /// # Errors
    /// As for [`give_back`](Self::give_back), and [`WrongDevice`](crate::Error::WrongDevice).
    pub fn give_back_to(mut self, stream: &Stream) -> Result<()> {
        self.end(Some(stream))
    }

    /// Makes the lender wait, and `stream` if there is one.
    fn end(&mut self, stream: Option<&Stream>) -> Result<()> {
        if !std::mem::take(&mut self.is_lent) {
            return Ok(());
        }
        let (shared, uses) = (Arc::clone(self.buffer.shared()), self.buffer.uses());
        let waits = |stream: &Stream| match &uses {
            Some(_) if !Arc::ptr_eq(&shared, stream.shared()) => Err(Error::WrongDevice),
            Some(uses) => {
                stream.check_thread()?;
                let _guard = stream.begin_submit();
                Ok(wait_for_all(stream.live(), uses)?)
            }
            None => Ok(shared.core.driver.synchronize()?),
        };
        let mut streams = [Some(&self.lender), stream].into_iter().flatten();
        // The memory returns to its owner even if the driver panics, so that must not happen.
        let left = abort_on_unwind(|| {
            let left = streams.try_for_each(waits);
            left.inspect_err(|error| wait_on_host(&shared, uses.as_deref(), error))
        });
        // There is nothing to free, and nothing of ours waits for it.
        self.buffer.take_owner();
        left
    }
}

impl<T: Pod> Drop for LentBuf<T> {
    fn drop(&mut self) {
        if let Err(error) = self.end(None) {
            self.buffer.shared().core.keep_stray_error(error);
        }
    }
}

impl<T: Pod> fmt::Debug for LentBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LentBuf").field(&self.buffer).finish()
    }
}
