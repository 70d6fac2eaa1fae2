//! Where chunks come from.

use std::io::{self, Read};
use std::marker::PhantomData;

use bytemuck::Pod;

use super::load::{Feed, Origin};
use pinlane_core::memory::{DeviceSlice, PinnedSlice, check_align};
use pinlane_core::{DeviceBuf, Error, PinnedBuf, Result};

/// One input of a pipeline: elements of `T`, `width` of which are an item.
pub struct Input<'a, T> {
    origin: Origin<'a>,
    width: usize,
    elements: PhantomData<T>,
}

/// What can be an input: a slice, pinned memory, device memory, or an [`Input`].
pub trait IntoInput<'a> {
    /// Its elements.
    type Item: Pod;

    /// As an input.
    fn into_input(self) -> Input<'a, Self::Item>;
}

impl<'a, T: Pod> Input<'a, T> {
    fn new(origin: Origin<'a>) -> Self {
        Self {
            origin,
            width: 1,
            elements: PhantomData,
        }
    }

    /// All that `reader` gives, as bytes of `T`. The host reads straight into pinned memory while
    /// the device works on earlier chunks.
    pub fn reader(mut reader: impl Read + 'a) -> Self {
        Self::new(Origin::Fill(Box::new(move |chunk: &mut [u8]| {
            let mut filled = 0;
            while filled < chunk.len() {
                match reader.read(&mut chunk[filled..]) {
                    Ok(0) => break,
                    Ok(bytes) if bytes > chunk.len() - filled => {
                        let says = "the reader says that it read more than it was asked for";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, says));
                    }
                    Ok(bytes) => filled += bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(filled)
        })))
    }

    /// Chunks that `fill` writes straight into pinned memory, while the device works on earlier
    /// ones. It says how many elements it wrote; 0 ends the input.
    pub fn fill(mut fill: impl FnMut(&mut [T]) -> io::Result<usize> + 'a) -> Self {
        Self::new(Origin::Fill(Box::new(move |chunk: &mut [u8]| {
            let chunk: &mut [T] = bytemuck::cast_slice_mut(chunk);
            let filled = fill(chunk)?;
            if filled > chunk.len() {
                let says = format!("{filled} elements were filled of {}", chunk.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, says));
            }
            Ok(filled * size_of::<T>())
        })))
    }

    /// One chunk for each batch of an iterator, made while the device works on earlier ones. A
    /// batch holds no more elements than a chunk; empty ones are passed over. Of several inputs only
    /// the first can be batches: it decides how long each chunk is.
    pub fn batches<B: AsRef<[T]>>(batches: impl IntoIterator<Item = B> + 'a) -> Self
    where
        T: 'a,
    {
        let mut batches = Some(batches);
        let mut rest = None;
        Self::new(Origin::Batches(Box::new(move |take| {
            if let Some(batches) = batches.take() {
                rest = Some(batches.into_iter());
            }
            let mut batches = rest.iter_mut().flatten();
            match batches.find(|batch| !batch.as_ref().is_empty()) {
                Some(batch) => take(bytemuck::cast_slice(batch.as_ref())).map(|()| true),
                None => Ok(false),
            }
        })))
    }

    /// So many elements are one item: chunks never cut one, and all inputs and the output of a run
    /// have the same number of items.
    #[must_use]
    pub fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    pub(super) fn into_feed(self) -> Result<Feed<'a>> {
        let item_bytes = item_bytes::<T>(self.width)?;
        if let Origin::Fill(_) = self.origin {
            check_align::<T>()?; // it writes into pinned memory
        }
        let feed = Feed::new(self.origin, item_bytes);
        match feed.known_bytes() {
            Some(bytes) if !bytes.is_multiple_of(item_bytes) => Err(Error::InvalidConfig {
                field: "input",
                reason: "a whole number of items",
            }),
            _ => Ok(feed),
        }
    }
}

/// Bytes of an item of so many elements.
pub(super) fn item_bytes<T>(width: usize) -> Result<usize> {
    match width.checked_mul(size_of::<T>()) {
        Some(0) => Err(Error::InvalidConfig {
            field: "wide",
            reason: "items of at least one byte",
        }),
        Some(bytes) => Ok(bytes),
        None => Err(Error::TooLarge {
            len: width,
            element_bytes: size_of::<T>(),
        }),
    }
}

impl<T> std::fmt::Debug for Input<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Pod> IntoInput<'a> for Input<'a, T> {
    type Item = T;

    fn into_input(self) -> Self {
        self
    }
}

/// Ordinary memory, through the express lane.
impl<'a, T: Pod> IntoInput<'a> for &'a [T] {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        Input::new(Origin::Pageable(bytemuck::cast_slice(self)))
    }
}

impl<'a, T: Pod> IntoInput<'a> for &'a Vec<T> {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        self.as_slice().into_input()
    }
}

/// Page-locked memory, copied from where it is.
impl<'a, T: Pod> IntoInput<'a> for PinnedSlice<'a, T> {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        Input::new(Origin::Pinned(self.into_bytes()))
    }
}

impl<'a, T: Pod + Send> IntoInput<'a> for &'a PinnedBuf<T> {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        PinnedSlice::from(self).into_input()
    }
}

/// Memory of the device, used where it is.
impl<'a, T: Pod> IntoInput<'a> for DeviceSlice<'a, T> {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        Input::new(Origin::Device(self.cast()))
    }
}

impl<'a, T: Pod> IntoInput<'a> for &'a DeviceBuf<T> {
    type Item = T;

    fn into_input(self) -> Input<'a, T> {
        self.whole().into_input()
    }
}
