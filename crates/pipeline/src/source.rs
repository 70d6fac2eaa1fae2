//! Uploading the chunks of an input.

use std::collections::VecDeque;
use std::io;

use super::buffers::BufferCache;
use super::error::{PipelineError, StageKind};
use super::record::StageStream;
use pinlane_core::memory::{DeviceSlice, Part, PinnedSlice};
use pinlane_core::{DeviceBuf, DeviceSliceMut, Error, PoolBuf, Result, Scope, Stream, Transfer};

/// Passes the bytes of the next batch to a function. Returns whether there was one.
pub(super) type NextBatch<'a> =
    Box<dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> + 'a>;

/// Writes the next bytes and returns their number; 0 at the end.
pub(super) type FillChunk<'a> = Box<dyn FnMut(&mut [u8]) -> io::Result<usize> + 'a>;

/// Where the bytes of an input come from.
pub(super) enum SourceKind<'a> {
    Pinned(PinnedSlice<'a, u8>),
    Pageable(&'a [u8]),
    Device(DeviceSlice<'a, u8>),
    Batches(NextBatch<'a>),
    Fill(FillChunk<'a>),
}

/// An input as bytes.
pub struct ChunkSource<'a> {
    origin: SourceKind<'a>,
    pub(super) item_bytes: usize,
    /// Bytes uploaded so far.
    at: usize,
    /// Filled pinned buffers in flight.
    filled: VecDeque<Filled>,
    /// How many there may be: fewer if no more memory can be pinned.
    filled_at_most: usize,
}

/// A pinned buffer in flight, and the chunk in it.
type Filled = (u64, Transfer<Part<PoolBuf<u8>>>);

/// What uploading a chunk needs.
pub(super) struct UploadContext<'r, 'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) stage_stream: StageStream<'r>,
    pub(super) cache: &'r BufferCache,
    /// Items of the largest chunk.
    pub(super) items_at_most: usize,
    /// Pinned buffers that one input may have in flight.
    pub(super) slots: usize,
}

impl<'a> ChunkSource<'a> {
    pub(super) fn new(origin: SourceKind<'a>, item_bytes: usize) -> Self {
        Self {
            origin,
            item_bytes,
            at: 0,
            filled: VecDeque::new(),
            filled_at_most: usize::MAX,
        }
    }

    /// Total bytes, if known.
    pub(super) fn known_bytes(&self) -> Option<usize> {
        match &self.origin {
            SourceKind::Pinned(slice) => Some(slice.len()),
            SourceKind::Pageable(slice) => Some(slice.len()),
            SourceKind::Device(slice) => Some(slice.len()),
            SourceKind::Batches(_) | SourceKind::Fill(_) => None,
        }
    }

    pub(super) fn known_items(&self) -> Option<usize> {
        self.known_bytes().map(|bytes| bytes / self.item_bytes)
    }

    /// Whether everything was uploaded, if the length is known.
    pub(super) fn is_used_up(&self) -> bool {
        self.known_bytes() == Some(self.at)
    }

    /// Whether the express lane uploads it.
    pub(super) fn uses_express_lane(&self) -> bool {
        matches!(
            self.origin,
            SourceKind::Pageable(_) | SourceKind::Batches(_)
        )
    }

    /// Whether it is on the device already, so that chunks need no buffer.
    pub(super) fn is_on_device(&self) -> bool {
        matches!(self.origin, SourceKind::Device(_))
    }

    /// A chunk of an input that is on the device already.
    pub(super) fn device_chunk(&self, first_item: usize, items: usize) -> DeviceSlice<'a, u8> {
        let start = first_item * self.item_bytes;
        match &self.origin {
            SourceKind::Device(slice) => slice.range(start..start + items * self.item_bytes),
            _ => unreachable!("all others have a buffer"),
        }
    }

    /// Uploads the next chunk into `target`, up to `items_at_most` items. Returns its items; 0 at the end.
    /// Without a `target` the chunk is on the device already and only counted.
    pub(super) fn load<'scope>(
        &mut self,
        chunk: u64,
        items_at_most: usize,
        target: Option<DeviceSliceMut<'_, u8>>,
        context: &UploadContext<'_, 'scope, 'a>,
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
            (SourceKind::Device(_), None) => next.len(),
            (_, None) => unreachable!("only chunks on the device need no buffer"),
            (SourceKind::Device(slice), Some(target)) => {
                let source = slice.range(next.clone());
                let target = target.range(..next.len());
                let touches = [source.touch(), target.touch()];
                let copied =
                    context
                        .stage_stream
                        .submit(StageKind::Upload, chunk, &touches, |stream| {
                            stream.copy_on_device(source, target)
                        });
                copied.map_err(uploading)?;
                next.len()
            }
            (SourceKind::Pinned(slice), Some(target)) => {
                let target = target.range(..next.len());
                let source = slice.range(next.clone());
                let sent = context.upload(chunk, target, |stream, target| {
                    context.scope.upload(stream, source, target).map(drop)
                });
                sent.map_err(uploading)?;
                next.len()
            }
            (SourceKind::Pageable(slice), Some(target)) => {
                let target = target.range(..next.len());
                let copied = context.upload(chunk, target, |stream, target| {
                    stream.copy_to_device(&slice[next.clone()], target)
                });
                copied.map_err(uploading)?;
                next.len()
            }
            (SourceKind::Batches(next), Some(mut target)) => {
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
                    context.upload(chunk, target, |stream, target| {
                        stream.copy_to_device(batch, target)
                    })
                });
                if more.map_err(uploading)? { loaded } else { 0 }
            }
            (SourceKind::Fill(fill), Some(target)) => {
                // As large as the largest chunk, since a later one may be larger than this one.
                let largest = context.items_at_most * self.item_bytes;
                let pinned = free_pinned(
                    &mut self.filled,
                    &mut self.filled_at_most,
                    chunk,
                    largest,
                    context,
                )?;
                let (pinned, bytes) = filled(fill, pinned, most)
                    .map_err(|error| PipelineError::at(chunk, StageKind::Read, error))?;
                if bytes > 0 {
                    let sent = context.upload(chunk, target.range(..bytes), |stream, target| {
                        Ok(stream.upload(pinned.part(..bytes), target)?)
                    });
                    self.filled.push_back((chunk, sent.map_err(uploading)?));
                }
                bytes
            }
        };
        if !bytes.is_multiple_of(self.item_bytes) {
            let says = format!(
                "{bytes} bytes are not a whole number of items of {} bytes",
                self.item_bytes
            );
            let error = io::Error::new(io::ErrorKind::InvalidData, says);
            return Err(PipelineError::at(chunk, StageKind::Read, error));
        }
        self.at += bytes;
        Ok(bytes / self.item_bytes)
    }

    /// Waits for the last filled chunks and returns their buffers to the cache.
    pub(super) fn finish(&mut self) -> std::result::Result<(), PipelineError> {
        let mut first = Ok(());
        for filled in self.filled.drain(..) {
            first = first.and(landed(filled).map(drop));
        }
        first
    }
}

impl UploadContext<'_, '_, '_> {
    /// Submits the upload of a chunk into `target`.
    fn upload<R>(
        &self,
        chunk: u64,
        target: DeviceSliceMut<'_, u8>,
        upload: impl FnOnce(&Stream, DeviceSliceMut<'_, u8>) -> Result<R>,
    ) -> Result<R> {
        let touches = [target.touch()];
        self.stage_stream
            .submit(StageKind::Upload, chunk, &touches, |stream| {
                upload(stream, target)
            })
    }
}

/// Waits until a chunk is on the device and returns its pinned buffer.
fn landed((chunk, flying): Filled) -> std::result::Result<PoolBuf<u8>, PipelineError> {
    match flying.wait() {
        Ok(part) => Ok(part.into_whole()),
        Err(failure) => Err(PipelineError::at(chunk, StageKind::Upload, failure.error)),
    }
}

/// A pinned buffer that is not in flight: a new one while there are few and memory can be pinned, else the
/// one filled longest ago.
fn free_pinned(
    filled: &mut VecDeque<Filled>,
    at_most: &mut usize,
    chunk: u64,
    bytes: usize,
    context: &UploadContext<'_, '_, '_>,
) -> std::result::Result<PoolBuf<u8>, PipelineError> {
    if filled.len() < context.slots.min(*at_most) {
        match context.cache.pinned(bytes) {
            Ok(made) => return Ok(made),
            Err(error) if filled.is_empty() => {
                return Err(PipelineError::at(chunk, StageKind::Upload, error));
            }
            Err(error) => {
                context.cache.note(error);
                *at_most = filled.len();
            }
        }
    }
    landed(filled.pop_front().expect("at least one is in flight"))
}

/// Fills up to `most` bytes of a buffer.
fn filled(
    fill: &mut FillChunk<'_>,
    mut pinned: PoolBuf<u8>,
    most: usize,
) -> io::Result<(PoolBuf<u8>, usize)> {
    let bytes = fill(&mut pinned[..most])?;
    debug_assert!(bytes <= most, "seen to by who made the input");
    Ok((pinned, bytes))
}

impl std::fmt::Debug for ChunkSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkSource")
            .field("item_bytes", &self.item_bytes)
            .finish_non_exhaustive()
    }
}

/// Device buffers for the inputs of a chunk.
pub(super) type InputBuffers = Vec<Option<DeviceBuf<u8>>>;
