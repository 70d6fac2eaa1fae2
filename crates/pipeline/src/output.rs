//! Where results go.

use std::io::{self, Write};
use std::marker::PhantomData;

use bytemuck::Pod;

use super::input::item_bytes;
use super::store::{Sink, Target};
use pinlane_core::memory::{DeviceSliceMut, PinnedSliceMut, check_align};
use pinlane_core::{DeviceBuf, Error, PinnedBuf, Result};

/// The output of a pipeline: elements of `T`, `width` of which are an item.
pub struct Output<'a, T> {
    target: Target<'a>,
    width: usize,
    elements: PhantomData<T>,
}

impl<'a, T: Pod> Output<'a, T> {
    fn new(target: Target<'a>) -> Self {
        Self {
            target,
            width: 1,
            elements: PhantomData,
        }
    }

    /// Bytes of the results, in order, written by a thread of their own, and flushed in the end.
    pub fn writer(mut writer: impl Write + Send + 'a) -> Self {
        Self::new(Target::Each(Box::new(move |chunk| match chunk {
            Some(chunk) => writer.write_all(chunk),
            None => writer.flush(),
        })))
    }

    /// `take` is called with the results of each chunk, in order, on a thread of its own, while
    /// later chunks are under way.
    pub fn each(mut take: impl FnMut(&[T]) -> io::Result<()> + Send + 'a) -> Self {
        Self::new(Target::Each(Box::new(move |chunk| match chunk {
            Some(chunk) => take(bytemuck::cast_slice(chunk)),
            None => Ok(()),
        })))
    }

    /// So many elements are the result of one item.
    #[must_use]
    pub fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    pub(super) fn into_sink(self) -> Result<Sink<'a>> {
        let item_bytes = item_bytes::<T>(self.width)?;
        if let Target::Each(_) = self.target {
            check_align::<T>()?; // it reads from pinned memory
        }
        let sink = Sink {
            target: self.target,
            item_bytes,
        };
        match sink.known_bytes() {
            Some(bytes) if !bytes.is_multiple_of(item_bytes) => Err(Error::InvalidConfig {
                field: "output",
                reason: "a whole number of items",
            }),
            _ => Ok(sink),
        }
    }
}

impl<T> std::fmt::Debug for Output<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

/// Ordinary memory, through the express lane.
impl<'a, T: Pod> From<&'a mut [T]> for Output<'a, T> {
    fn from(target: &'a mut [T]) -> Self {
        Self::new(Target::Pageable(bytemuck::cast_slice_mut(target)))
    }
}

impl<'a, T: Pod> From<&'a mut Vec<T>> for Output<'a, T> {
    fn from(target: &'a mut Vec<T>) -> Self {
        Self::from(target.as_mut_slice())
    }
}

/// Page-locked memory, written by the device where it is.
impl<'a, T: Pod> From<PinnedSliceMut<'a, T>> for Output<'a, T> {
    fn from(target: PinnedSliceMut<'a, T>) -> Self {
        Self::new(Target::Pinned(target.into_bytes()))
    }
}

impl<'a, T: Pod + Send> From<&'a mut PinnedBuf<T>> for Output<'a, T> {
    fn from(target: &'a mut PinnedBuf<T>) -> Self {
        Self::from(PinnedSliceMut::from(target))
    }
}

/// Memory of the device: results stay there.
impl<'a, T: Pod> From<DeviceSliceMut<'a, T>> for Output<'a, T> {
    fn from(target: DeviceSliceMut<'a, T>) -> Self {
        Self::new(Target::Device(target.cast()))
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuf<T>> for Output<'a, T> {
    fn from(target: &'a mut DeviceBuf<T>) -> Self {
        Self::from(target.whole_mut())
    }
}
