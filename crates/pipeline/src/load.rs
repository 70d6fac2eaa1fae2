//! How a chunk gets to the device.

use std::collections::VecDeque;
use std::io;

use super::error::{PipelineError, StageKind};
use super::record::Track;
use super::shelf::Shelf;
use pinlane_core::memory::{DeviceSlice, Part, PinnedSlice};
use pinlane_core::{DeviceBuf, DeviceSliceMut, Error, PoolBuf, Result, Scope, Stream, Transfer};

/// Gives the bytes of the next batch to the taker. Whether there was one.
pub(super) type NextBatch<'a> =
    Box<dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> + 'a>;

/// Writes the next bytes. How many; 0 at the end.
pub(super) type FillChunk<'a> = Box<dyn FnMut(&mut [u8]) -> io::Result<usize> + 'a>;

/// Where the bytes of an input are.
pub(super) enum Origin<'a> {
    Pinned(PinnedSlice<'a, u8>),
    Pageable(&'a [u8]),
    Device(DeviceSlice<'a, u8>),
    Batches(NextBatch<'a>),
    Fill(FillChunk<'a>),
}

/// An input, in bytes.
pub struct Feed<'a> {
    origin: Origin<'a>,
    pub(super) item_bytes: usize,
    /// Bytes that were loaded.
    at: usize,
    /// Pinned buffers that chunks were filled into, in flight.
    filled: VecDeque<Filled>,
    /// How many of them there may be: fewer where no more memory can be pinned.
    filled_at_most: usize,
}

/// A pinned buffer in flight, and the chunk in it.
type Filled = (u64, Transfer<Part<PoolBuf<u8>>>);

/// What a chunk is loaded with.
pub(super) struct Dock<'r, 'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) track: Track<'r>,
    pub(super) shelf: &'r Shelf,
    /// Items of the largest chunk.
    pub(super) items_at_most: usize,
    /// Pinned buffers that one input may have in flight.
    pub(super) slots: usize,
}

impl<'a> Feed<'a> {
    pub(super) fn new(origin: Origin<'a>, item_bytes: usize) -> Self {
        Self {
            origin,
            item_bytes,
            at: 0,
            filled: VecDeque::new(),
            filled_at_most: usize::MAX,
        }
    }

    /// All bytes, where that is known.
    pub(super) fn known_bytes(&self) -> Option<usize> {
        match &self.origin {
            Origin::Pinned(slice) => Some(slice.len()),
            Origin::Pageable(slice) => Some(slice.len()),
            Origin::Device(slice) => Some(slice.len()),
            Origin::Batches(_) | Origin::Fill(_) => None,
        }
    }

    pub(super) fn known_items(&self) -> Option<usize> {
        self.known_bytes().map(|bytes| bytes / self.item_bytes)
    }

    /// Whether all of it was loaded, where that can be told.
    pub(super) fn is_used_up(&self) -> bool {
        self.known_bytes() == Some(self.at)
    }

    /// Whether the express lane brings it.
    pub(super) fn goes_by_lanes(&self) -> bool {
        matches!(self.origin, Origin::Pageable(_) | Origin::Batches(_))
    }

    /// Whether its chunks need no buffer, being on the device.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.origin, Origin::Device(_))
    }

    /// A chunk that is on the device anyway.
    pub(super) fn there(&self, first_item: usize, items: usize) -> DeviceSlice<'a, u8> {
        let start = first_item * self.item_bytes;
        match &self.origin {
            Origin::Device(slice) => slice.range(start..start + items * self.item_bytes),
            _ => unreachable!("all others have a buffer"),
        }
    }

    /// Load the next chunk into `target`, at most as many items as fit it. How many there were; 0
    /// at the end. With no `target` the chunk is on the device, and is only counted.
    pub(super) fn load<'scope>(
        &mut self,
        chunk: u64,
        items_at_most: usize,
        target: Option<DeviceSliceMut<'_, u8>>,
        dock: &Dock<'_, 'scope, 'a>,
    ) -> std::result::Result<usize, PipelineError> {
        let failed = |stage| move |error: Error| PipelineError::at(chunk, stage, error);
        let uploading = failed(StageKind::Upload);
        let most = items_at_most * self.item_bytes;
        let next = match self.known_bytes() {
            Some(all) => self.at..all.min(self.at.saturating_add(most)),
            None => 0..0,
        };
        if next.is_empty() && self.known_bytes().is_some() {
            return Ok(0);
        }
        let bytes = match (&mut self.origin, target) {
            (Origin::Device(_), None) => next.len(),
            (_, None) => unreachable!("only chunks on the device need no buffer"),
            (Origin::Device(slice), Some(target)) => {
                let source = slice.range(next.clone());
                let target = target.range(..next.len());
                let touches = [source.touch(), target.touch()];
                let copied = dock
                    .track
                    .submit(StageKind::Upload, chunk, &touches, |stream| {
                        stream.copy_on_device(source, target)
                    });
                copied.map_err(uploading)?;
                next.len()
            }
            (Origin::Pinned(slice), Some(target)) => {
                let target = target.range(..next.len());
                let source = slice.range(next.clone());
                let sent = dock.upload(chunk, target, |stream, target| {
                    dock.scope.upload(stream, source, target).map(drop)
                });
                sent.map_err(uploading)?;
                next.len()
            }
            (Origin::Pageable(slice), Some(target)) => {
                let target = target.range(..next.len());
                let copied = dock.upload(chunk, target, |stream, target| {
                    stream.copy_to_device(&slice[next.clone()], target)
                });
                copied.map_err(uploading)?;
                next.len()
            }
            (Origin::Batches(next), Some(mut target)) => {
                let mut loaded = 0;
                let more = next(&mut |batch| {
                    if batch.len() > most {
                        return Err(Error::BatchTooLarge {
                            batch_bytes: batch.len(),
                            chunk_bytes: most,
                        });
                    }
                    loaded = batch.len();
                    let target = target.reborrow().range(..batch.len());
                    dock.upload(chunk, target, |stream, target| {
                        stream.copy_to_device(batch, target)
                    })
                });
                if more.map_err(uploading)? { loaded } else { 0 }
            }
            (Origin::Fill(fill), Some(target)) => {
                // Of the largest size, since a later chunk may be larger than this one.
                let largest = dock.items_at_most * self.item_bytes;
                let pinned = free_pinned(
                    &mut self.filled,
                    &mut self.filled_at_most,
                    chunk,
                    largest,
                    dock,
                )?;
                let (pinned, bytes) = filled(fill, pinned, most)
                    .map_err(|error| PipelineError::at(chunk, StageKind::Read, error))?;
                if bytes > 0 {
                    let sent = dock.upload(chunk, target.range(..bytes), |stream, target| {
                        Ok(stream.upload(pinned.part(..bytes), target)?)
                    });
                    self.filled.push_back((chunk, sent.map_err(uploading)?));
                }
                bytes
            }
        };
        if !bytes.is_multiple_of(self.item_bytes) {
            let says = format!(
                "{bytes} bytes are no whole number of items of {}",
                self.item_bytes
            );
            let error = io::Error::new(io::ErrorKind::InvalidData, says);
            return Err(PipelineError::at(chunk, StageKind::Read, error));
        }
        self.at += bytes;
        Ok(bytes / self.item_bytes)
    }

    /// Wait for the last chunks that were filled, and give their buffers back.
    pub(super) fn finish(&mut self) -> std::result::Result<(), PipelineError> {
        let mut first = Ok(());
        for filled in self.filled.drain(..) {
            first = first.and(landed(filled).map(drop));
        }
        first
    }
}

impl Dock<'_, '_, '_> {
    /// Submit what uploads a chunk into `target`.
    fn upload<R>(
        &self,
        chunk: u64,
        target: DeviceSliceMut<'_, u8>,
        upload: impl FnOnce(&Stream, DeviceSliceMut<'_, u8>) -> Result<R>,
    ) -> Result<R> {
        let touches = [target.touch()];
        self.track
            .submit(StageKind::Upload, chunk, &touches, |stream| {
                upload(stream, target)
            })
    }
}

/// Wait for a chunk to be on the device. The buffer that it was in.
fn landed((chunk, flying): Filled) -> std::result::Result<PoolBuf<u8>, PipelineError> {
    match flying.wait() {
        Ok(part) => Ok(part.into_whole()),
        Err(failure) => Err(PipelineError::at(chunk, StageKind::Upload, failure.error)),
    }
}

/// A pinned buffer that nothing uses: a new one as long as there are few, and as long as memory can
/// be pinned; else the one that was filled first.
fn free_pinned(
    filled: &mut VecDeque<Filled>,
    at_most: &mut usize,
    chunk: u64,
    bytes: usize,
    dock: &Dock<'_, '_, '_>,
) -> std::result::Result<PoolBuf<u8>, PipelineError> {
    if filled.len() < dock.slots.min(*at_most) {
        match dock.shelf.pinned(bytes) {
            Ok(made) => return Ok(made),
            Err(error) if filled.is_empty() => {
                return Err(PipelineError::at(chunk, StageKind::Upload, error));
            }
            Err(error) => {
                dock.shelf.note(error);
                *at_most = filled.len();
            }
        }
    }
    landed(filled.pop_front().expect("at least one is in flight"))
}

/// Fill up to `most` bytes of a buffer.
fn filled(
    fill: &mut FillChunk<'_>,
    mut pinned: PoolBuf<u8>,
    most: usize,
) -> io::Result<(PoolBuf<u8>, usize)> {
    let bytes = fill(&mut pinned[..most])?;
    debug_assert!(bytes <= most, "seen to by who made the input");
    Ok((pinned, bytes))
}

impl std::fmt::Debug for Feed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed")
            .field("item_bytes", &self.item_bytes)
            .finish_non_exhaustive()
    }
}

/// Device memory of a chunk's inputs.
pub(super) type Bays = Vec<Option<DeviceBuf<u8>>>;
