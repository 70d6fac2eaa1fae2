//! Pieces of device memory, to be read.

use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{DeviceBuf, DeviceRegion, Touch};
use crate::core::Extent;
use crate::memory::resolve;

/// A piece of device memory, to be read.
pub struct DeviceSlice<'a, T> {
    region: &'a DeviceRegion,
    start: usize,
    len: usize,
    elements: PhantomData<&'a T>,
}

impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<'a, T: Pod> DeviceSlice<'a, T> {
    pub(super) fn new(region: &'a DeviceRegion, start: usize, len: usize) -> Self {
        Self {
            region,
            start,
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

    /// The address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.ptr().offset(self.start * size_of::<T>())
    }

    /// A piece of it.
    ///
    /// # Panics
    /// When the range is outside.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            start: self.start + range.start,
            len: range.len(),
            ..self
        }
    }

    /// The same memory as elements of another kind, which must fit it exactly.
    #[doc(hidden)]
    pub fn cast<U: Pod>(self) -> DeviceSlice<'a, U> {
        let (start, len) = cast::<T, U>(self.start, self.len);
        DeviceSlice::new(self.region, start, len)
    }

    #[doc(hidden)]
    pub fn touch(&self) -> Touch<'a> {
        Touch {
            region: self.region,
            extent: Extent::One(self.span().1),
            writes: false,
        }
    }

    /// Which bytes of which memory.
    pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
        (self.region, span::<T>(self.start, self.len))
    }
}

impl<'a, T: Pod> From<&'a DeviceBuf<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a DeviceBuf<T>) -> Self {
        buffer.whole()
    }
}

/// Where elements of `T` begin and how many they are, in elements of `U`.
pub(super) fn cast<T, U>(start: usize, len: usize) -> (usize, usize) {
    let Range { start, end } = span::<T>(start, len);
    let bytes = size_of::<U>();
    let fits = bytes > 0 && start.is_multiple_of(bytes) && end.is_multiple_of(bytes);
    assert!(fits, "bytes {start} to {end} as elements of {bytes} bytes");
    (start / bytes, (end - start) / bytes)
}

/// Bytes of elements of `T`.
pub(super) fn span<T>(start: usize, len: usize) -> Range<usize> {
    start * size_of::<T>()..(start + len) * size_of::<T>()
}
