//! Device buffers that know who uses them.
//!
//! ```text
//!   alloc       ways to get a DeviceBuf
//!   memory      DeviceMemory: one allocation, freed the way it was made
//!   kept        memory of dropped buffers, kept for the next ones
//!   region      the memory of one, with the books of its uses; a Touch is one use
//!   slice       DeviceSlice: a piece, to be read; it enters its uses into the same books
//!   slice_mut   DeviceSliceMut: a piece, to be written
//!   foreign     buffers whose memory is another library's
//! ```

mod alloc;
#[cfg(feature = "cudarc")]
mod foreign;
mod kept;
mod memory;
mod region;
mod slice;
mod slice_mut;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

pub(crate) use self::kept::KeptMemory;
pub(crate) use self::memory::DeviceMemory;
#[cfg(feature = "cudarc")]
pub(crate) use self::memory::Owner;
pub(crate) use self::region::DeviceRegion;
pub use self::region::Touch;
pub use self::slice::DeviceSlice;
pub use self::slice_mut::DeviceSliceMut;
use super::resolve;
use crate::device::Shared;

/// Memory on the device.
///
/// It knows its last writer and all its readers since, range by range, so that using it on another
/// stream waits for exactly what it must. Dropping it never waits: the memory goes back when its
/// last use is done.
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element, for kernels and foreign libraries. What they do with it
    /// is not tracked, and must be over when the buffer is dropped: its memory may be the next
    /// buffer's then (see [`Device::keep_device_memory`](crate::Device::keep_device_memory)).
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.ptr()
    }

    /// A piece that is written while others of the same buffer are: the books put those in order
    /// that overlap.
    ///
    /// # Panics
    /// When the range is outside.
    #[doc(hidden)]
    pub fn shared_range_mut(&self, range: Range<usize>) -> DeviceSliceMut<'_, T> {
        let range = resolve(range, self.len);
        DeviceSliceMut::new(&self.region, range.start, range.len())
    }

    /// Whether earlier work on it can never be waited for.
    #[doc(hidden)]
    pub fn is_stranded(&self) -> bool {
        self.region.is_stranded()
    }

    /// All of it, to be read.
    #[must_use]
    pub fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(&self.region, 0, self.len)
    }

    /// All of it, to be written.
    #[must_use]
    pub fn whole_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&self.region, 0, self.len)
    }

    /// A piece, to be read.
    ///
    /// # Panics
    /// When the range is outside of the buffer.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.whole().range(range)
    }

    /// A piece, to be written.
    ///
    /// # Panics
    /// When the range is outside of the buffer.
    #[must_use]
    pub fn range_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        self.whole_mut().range(range)
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
