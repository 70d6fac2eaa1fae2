//! An owned sub-range of a buffer.

use std::ops::{Range, RangeBounds};

use bytemuck::Pod;

use super::{
    DeviceBuf, DeviceSlice, DeviceSliceMut, PinnedFor, PinnedSource, PinnedTarget, resolve,
};
use crate::Sealed;

/// A buffer of which only a range takes part in transfers.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// # let mut target = device.alloc::<u8>(16)?;
/// let buffer = device.pinned_from(&[7u8; 64])?;
/// let part = stream.upload(buffer.part(8..24), &mut target)?.wait()?;
/// let buffer = part.into_whole();
/// # assert_eq!(buffer.len(), 64);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Part<B> {
    whole: B,
    range: Range<usize>,
}

impl<B> Part<B> {
    pub(crate) fn new<T: Pod>(whole: B, range: impl RangeBounds<usize>) -> Self
    where
        B: PinnedSource<T>,
    {
        let len = whole.len();
        Self::of_len(whole, len, range)
    }

    pub(super) fn of_len(whole: B, len: usize, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, len);
        Self { whole, range }
    }

    /// The range of the whole buffer.
    #[must_use]
    pub fn bounds(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the whole buffer.
    #[must_use]
    pub fn into_whole(self) -> B {
        self.whole
    }
}

impl<'a, T: Pod> From<&'a Part<DeviceBuf<T>>> for DeviceSlice<'a, T> {
    fn from(part: &'a Part<DeviceBuf<T>>) -> Self {
        part.whole.range(part.bounds())
    }
}

impl<'a, T: Pod> From<&'a mut Part<DeviceBuf<T>>> for DeviceSliceMut<'a, T> {
    fn from(part: &'a mut Part<DeviceBuf<T>>) -> Self {
        let range = part.bounds();
        part.whole.range_mut(range)
    }
}

impl<B> Sealed for Part<B> {}

// SAFETY: a range of memory that upholds the contract as a whole; `new` checked the bounds, and
// `StableMemory` and pinned memory never shrink.
unsafe impl<T: Pod, B: PinnedSource<T>> PinnedSource<T> for Part<B> {
    fn start(&self) -> *const T {
        self.whole.start().wrapping_add(self.range.start)
    }

    fn len(&self) -> usize {
        self.range.len()
    }

    fn pinned_for(&self) -> PinnedFor<'_> {
        self.whole.pinned_for()
    }
}

// SAFETY: as above.
unsafe impl<T: Pod, B: PinnedTarget<T>> PinnedTarget<T> for Part<B> {
    fn start_mut(&mut self) -> *mut T {
        self.whole.start_mut().wrapping_add(self.range.start)
    }
}
