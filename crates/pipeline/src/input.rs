//! Inputs of a pipeline: one, or a tuple of several.

use std::io::{self, Read};
use std::marker::PhantomData;

use bytemuck::Pod;

use super::upload::{ChunkSource, SourceKind};
use pinlane_core::internal::check_align;
use pinlane_core::memory::{DeviceSlice, PinnedSlice};
use pinlane_core::{DeviceBuf, Error, PinnedBuf, Result};

/// One input of a pipeline: elements of `T`, of which `width` form an item.
pub struct Input<'a, T> {
    origin: SourceKind<'a>,
    width: usize,
    elements: PhantomData<T>,
}

/// Anything that can be an input: a slice, pinned memory, device memory, or an [`Input`].
pub trait IntoInput<'a> {
    /// The element type.
    type Item: Pod;

    /// Converts it into an input.
    fn into_input(self) -> Input<'a, Self::Item>;
}

impl<'a, T: Pod> Input<'a, T> {
    fn new(origin: SourceKind<'a>) -> Self {
        Self {
            origin,
            width: 1,
            elements: PhantomData,
        }
    }

    /// Everything that `reader` returns, as bytes of `T`. The host reads directly into pinned memory while the
    /// device works on earlier chunks.
    pub fn reader(mut reader: impl Read + 'a) -> Self {
        Self::new(SourceKind::Fill(Box::new(move |chunk: &mut [u8]| {
            let mut filled = 0;
            while filled < chunk.len() {
                match reader.read(&mut chunk[filled..]) {
                    Ok(0) => break,
                    Ok(bytes) if bytes > chunk.len() - filled => {
                        let says = "the reader returned more bytes than requested";
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

    /// Chunks that `fill` writes directly into pinned memory while the device works on earlier ones. `fill`
    /// returns the number of elements it wrote; 0 ends the input.
    pub fn fill(mut fill: impl FnMut(&mut [T]) -> io::Result<usize> + 'a) -> Self {
        Self::new(SourceKind::Fill(Box::new(move |chunk: &mut [u8]| {
            let chunk: &mut [T] = bytemuck::cast_slice_mut(chunk);
            let filled = fill(chunk)?;
            if filled > chunk.len() {
                let says = format!(
                    "`fill` returned {filled} for a chunk of {} elements",
                    chunk.len()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, says));
            }
            Ok(filled * size_of::<T>())
        })))
    }

    /// One chunk per batch of an iterator, which runs while the device works on earlier chunks. A batch
    /// must fit a chunk; empty batches are skipped. Only the first of several inputs can be
    /// batches, because it decides the length of each chunk.
    pub fn batches<B: AsRef<[T]>>(batches: impl IntoIterator<Item = B> + 'a) -> Self
    where
        T: 'a,
    {
        let mut batches = Some(batches);
        let mut rest = None;
        Self::new(SourceKind::Batches(Box::new(move |take| {
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

    /// Sets how many elements form an item. Chunks never split an item, and all inputs and the output of a
    /// run have the same number of items.
    #[must_use]
    pub fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    pub(super) fn into_source(self) -> Result<ChunkSource<'a>> {
        let item_bytes = item_bytes::<T>(self.width)?;
        if let SourceKind::Fill(_) = self.origin {
            check_align::<T>()?; // `fill` writes into pinned memory
        }
        let source = ChunkSource::new(self.origin, item_bytes);
        check_whole_items("input", source.known_bytes(), item_bytes)?;
        Ok(source)
    }
}

/// Checks that the bytes, if known, are a whole number of items.
pub(super) fn check_whole_items(
    field: &'static str,
    bytes: Option<usize>,
    item_bytes: usize,
) -> Result<()> {
    match bytes {
        Some(bytes) if !bytes.is_multiple_of(item_bytes) => Err(Error::InvalidConfig {
            field,
            reason: "a whole number of items",
        }),
        _ => Ok(()),
    }
}

/// Bytes of an item of `width` elements.
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

macro_rules! inputs {
    ($($(#[$docs:meta])* $source:ty: [$($bounds:tt)*], $this:ident => $input:expr;)*) => {
        $(
            $(#[$docs])*
            impl<'a, T: $($bounds)*> IntoInput<'a> for $source {
                type Item = T;

                fn into_input(self) -> Input<'a, T> {
                    let $this = self;
                    $input
                }
            }
        )*
    };
}

inputs! {
    Input<'a, T>: [Pod], input => input;
    /// Ordinary memory, copied by the express lane.
    &'a [T]: [Pod], slice => Input::new(SourceKind::Pageable(bytemuck::cast_slice(slice)));
    &'a Vec<T>: [Pod], vec => vec.as_slice().into_input();
    /// Pinned memory, copied directly.
    PinnedSlice<'a, T>: [Pod], slice => Input::new(SourceKind::Pinned(slice.into_bytes()));
    &'a PinnedBuf<T>: [Pod + Send], buffer => PinnedSlice::from(buffer).into_input();
    /// Device memory, used in place.
    DeviceSlice<'a, T>: [Pod], slice => Input::new(SourceKind::Device(slice.cast()));
    &'a DeviceBuf<T>: [Pod], buffer => buffer.whole().into_input();
}

/// The inputs of a run: one, or a tuple of up to four with the same number of items.
pub trait Inputs<'a> {
    /// The device memory of one chunk, for each input.
    type Slices<'s>;

    #[doc(hidden)]
    fn into_sources(self) -> Result<Vec<ChunkSource<'a>>>;

    #[doc(hidden)]
    fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s>;
}

impl<'a, I: IntoInput<'a>> Inputs<'a> for I {
    type Slices<'s> = DeviceSlice<'s, I::Item>;

    fn into_sources(self) -> Result<Vec<ChunkSource<'a>>> {
        Ok(vec![self.into_input().into_source()?])
    }

    fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s> {
        typed(slices, 0)
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt)*) => {
        impl<'a, $($name: IntoInput<'a>),*> Inputs<'a> for ($($name,)*) {
            type Slices<'s> = ($(DeviceSlice<'s, $name::Item>,)*);

            #[allow(non_snake_case)]
            fn into_sources(self) -> Result<Vec<ChunkSource<'a>>> {
                let ($($name,)*) = self;
                let sources = vec![$($name.into_input().into_source()?),*];
                agree(&sources)?;
                Ok(sources)
            }

            fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s> {
                ($(typed(slices, $index),)*)
            }
        }
    };
}

tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);

fn typed<'s, T: Pod>(slices: &[DeviceSlice<'s, u8>], index: usize) -> DeviceSlice<'s, T> {
    slices[index].cast()
}

/// Checks that inputs of known length have the same number of items.
fn agree(sources: &[ChunkSource<'_>]) -> Result<()> {
    let mut known = sources.iter().filter_map(ChunkSource::known_items);
    let items = known.next().unwrap_or(0);
    match known.find(|&other| other != items) {
        Some(other_items) => Err(Error::InputsDiffer { items, other_items }),
        None => Ok(()),
    }
}
