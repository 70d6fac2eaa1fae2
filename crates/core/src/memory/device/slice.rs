//! Sub-ranges of device memory, for reading or writing.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{DeviceBuf, DeviceRegion, Touch};
use crate::memory::resolve;
use crate::protocol::Extent;

/// A range of device memory, for reading.
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

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.ptr().offset(self.start * size_of::<T>())
    }

    /// A sub-range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            start: self.start + range.start,
            len: range.len(),
            ..self
        }
    }

    /// Reinterprets the memory as elements of another type, which must fit it exactly.
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

    /// The byte range and the memory it is in.
    pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
        (self.region, span::<T>(self.start, self.len))
    }
}

impl<'a, T: Pod> From<&'a DeviceBuf<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a DeviceBuf<T>) -> Self {
        buffer.whole()
    }
}

/// A range of device memory, for writing. Two of them never overlap.
pub struct DeviceSliceMut<'a, T> {
    region: &'a DeviceRegion,
    start: usize,
    len: usize,
    elements: PhantomData<&'a mut T>,
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    pub(super) fn new(region: &'a DeviceRegion, start: usize, len: usize) -> Self {
        Self {
            region,
            start,
            len,
            elements: PhantomData,
        }
    }

    /// Borrows the slice for a shorter time, so that it can be used again afterwards.
    #[must_use]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut { ..*self }
    }

    /// The same range, for reading.
    #[must_use]
    pub fn as_read(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.region, self.start, self.len)
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

    /// Address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.as_read().device_ptr()
    }

    /// A sub-range.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            start: self.start + range.start,
            len: range.len(),
            ..self
        }
    }

    /// Splits in two at element `at`.
    ///
    /// # Panics
    /// If `at` is out of bounds.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let tail = resolve(at.., self.len);
        let second = Self {
            start: self.start + tail.start,
            len: tail.len(),
            ..self
        };
        let first = Self { len: at, ..self };
        (first, second)
    }

    /// Splits into chunks of `len` elements each; the last may be shorter.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
        assert!(len > 0, "pieces of no elements");
        (0..self.len).step_by(len).map(move |start| {
            let len = len.min(self.len - start);
            Self::new(self.region, self.start + start, len)
        })
    }

    /// Reinterprets the memory as elements of another type, which must fit it exactly.
    #[doc(hidden)]
    pub fn cast<U: Pod>(self) -> DeviceSliceMut<'a, U> {
        let (start, len) = cast::<T, U>(self.start, self.len);
        DeviceSliceMut::new(self.region, start, len)
    }

    #[doc(hidden)]
    pub fn touch(&self) -> Touch<'a> {
        Touch {
            region: self.region,
            extent: Extent::One(self.span().1),
            writes: true,
        }
    }

    /// The byte range and the memory it is in.
    pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
        (self.region, span::<T>(self.start, self.len))
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuf<T>> for DeviceSliceMut<'a, T> {
    fn from(buffer: &'a mut DeviceBuf<T>) -> Self {
        buffer.whole_mut()
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "DeviceSlice", self.region, self.start, self.len)
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "DeviceSliceMut", self.region, self.start, self.len)
    }
}

fn debug(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    region: &DeviceRegion,
    start: usize,
    len: usize,
) -> fmt::Result {
    f.debug_struct(name)
        .field("buffer", &region.ptr())
        .field("start", &start)
        .field("len", &len)
        .finish()
}

/// Converts start and length from elements of `T` to elements of `U`.
fn cast<T, U>(start: usize, len: usize) -> (usize, usize) {
    let Range { start, end } = span::<T>(start, len);
    let bytes = size_of::<U>();
    let fits = bytes > 0 && start.is_multiple_of(bytes) && end.is_multiple_of(bytes);
    assert!(fits, "bytes {start} to {end} as elements of {bytes} bytes");
    (start / bytes, (end - start) / bytes)
}

/// Byte range of elements of `T`.
fn span<T>(start: usize, len: usize) -> Range<usize> {
    start * size_of::<T>()..(start + len) * size_of::<T>()
}
