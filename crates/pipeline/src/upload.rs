//! Uploading the chunks of an input.

use std::collections::VecDeque;
use std::io;

use super::buffer_cache::BufferCache;
use super::error::{PipelineError, RunResult, StageKind};
use super::stage_recorder::StageStream;
use pinlane_core::memory::{DeviceSlice, Part, PinnedSlice};
use pinlane_core::{DeviceSliceMut, Error, PoolBuf, Result, Scope, Stream, Transfer};
use pinlane_model::pipeline::Memory;

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
    filled: FilledBuffers,
}

/// Filled pinned buffers in flight.
struct FilledBuffers {
    /// With the chunk in each.
    in_flight: VecDeque<(u64, Transfer<Part<PoolBuf<u8>>>)>,
    /// How many there may be: fewer if no more memory can be pinned.
    at_most: usize,
}

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
            filled: FilledBuffers {
                in_flight: VecDeque::new(),
                at_most: usize::MAX,
            },
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

    /// The first items and the others, of an input of known length.
    pub(super) fn split(self, items: usize) -> Result<(Self, Self)> {
        let at = items * self.item_bytes;
        let (first, rest) = match self.origin {
            SourceKind::Pinned(slice) => (
                SourceKind::Pinned(slice.range(..at)),
                SourceKind::Pinned(slice.range(at..)),
            ),
            SourceKind::Pageable(slice) => (
                SourceKind::Pageable(&slice[..at]),
                SourceKind::Pageable(&slice[at..]),
            ),
            SourceKind::Device(slice) => (
                SourceKind::Device(slice.range(..at)),
                SourceKind::Device(slice.range(at..)),
            ),
            SourceKind::Batches(_) | SourceKind::Fill(_) => {
                return Err(Error::InvalidConfig {
                    field: "input",
                    reason: "of known length",
                });
            }
        };
        let part = |origin| Self::new(origin, self.item_bytes);
        Ok((part(first), part(rest)))
    }

    /// Where the bytes are, for the planner.
    pub(super) fn memory(&self) -> Memory {
        match self.origin {
            SourceKind::Pinned(_) | SourceKind::Fill(_) => Memory::Pinned,
            SourceKind::Pageable(_) | SourceKind::Batches(_) => Memory::Express,
            SourceKind::Device(_) => Memory::Device,
        }
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
    ) -> RunResult<usize> {
        let most = items_at_most * self.item_bytes;
        let known = self.known_bytes();
        let next = known.map_or(0..0, |all| self.at..all.min(self.at.saturating_add(most)));
        if next.is_empty() && known.is_some() {
            return Ok(0);
        }
        let target = target.map(|target| match known {
            Some(_) => target.range(..next.len()),
            None => target,
        });
        let known_bytes = next.len();
        let uploaded = match (&mut self.origin, target) {
            (SourceKind::Device(_), None) => Ok(known_bytes),
            (_, None) => unreachable!("only chunks on the device need no buffer"),
            (SourceKind::Device(slice), Some(target)) => {
                let source = slice.range(next);
                let touches = [source.touch(), target.touch()];
                let copied =
                    context
                        .stage_stream
                        .submit(StageKind::Upload, chunk, &touches, |stream| {
                            stream.copy_on_device(source, target)
                        });
                copied.map(|()| known_bytes)
            }
            (SourceKind::Pinned(slice), Some(target)) => {
                let source = slice.range(next);
                let sent = context.upload(chunk, target, |stream, target| {
                    context.scope.upload(stream, source, target)
                });
                sent.map(|_| known_bytes)
            }
            (SourceKind::Pageable(slice), Some(target)) => {
                let copied = context.upload(chunk, target, |stream, target| {
                    stream.copy_to_device(&slice[next], target)
                });
                copied.map(|()| known_bytes)
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
                more.map(|more| if more { loaded } else { 0 })
            }
            (SourceKind::Fill(fill), Some(target)) => {
                // As large as the largest chunk, since a later one may be larger than this one.
                let largest = context.items_at_most * self.item_bytes;
                let mut pinned = self.filled.free(chunk, largest, context)?;
                let bytes = fill(&mut pinned[..most])
                    .map_err(|error| PipelineError::at(chunk, StageKind::Read, error))?;
                debug_assert!(bytes <= most, "seen to by who made the input");
                match bytes {
                    0 => Ok(0),
                    _ => {
                        let sent =
                            context.upload(chunk, target.range(..bytes), |stream, target| {
                                Ok(stream.upload(pinned.part(..bytes), target)?)
                            });
                        sent.map(|sent| {
                            self.filled.in_flight.push_back((chunk, sent));
                            bytes
                        })
                    }
                }
            }
        };
        let bytes = uploaded.map_err(|error| PipelineError::at(chunk, StageKind::Upload, error))?;
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
    pub(super) fn finish(&mut self) -> RunResult<()> {
        let mut first = Ok(());
        while let Some(landed) = self.filled.next_landed() {
            first = first.and(landed.map(drop));
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

impl FilledBuffers {
    /// Waits until the chunk filled longest ago is on the device, and returns its buffer.
    fn next_landed(&mut self) -> Option<RunResult<PoolBuf<u8>>> {
        let (chunk, flying) = self.in_flight.pop_front()?;
        let failed = |error| PipelineError::at(chunk, StageKind::Upload, error);
        let landed = flying.wait().map(Part::into_whole);
        Some(landed.map_err(|failure| failed(failure.error)))
    }

    /// A pinned buffer that is not in flight: a new one while there are few and memory can be pinned, else
    /// the one filled longest ago.
    fn free(
        &mut self,
        chunk: u64,
        bytes: usize,
        context: &UploadContext<'_, '_, '_>,
    ) -> RunResult<PoolBuf<u8>> {
        let cache = context.cache;
        if self.in_flight.is_empty() {
            let first = cache.pinned(bytes);
            return first.map_err(|error| PipelineError::at(chunk, StageKind::Upload, error));
        }
        self.at_most = self.at_most.min(context.slots);
        let another = cache.another_pinned(bytes, self.in_flight.len(), &mut self.at_most);
        let landed = || self.next_landed().expect("at least one is in flight");
        another.map_or_else(landed, Ok)
    }
}

impl std::fmt::Debug for ChunkSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkSource")
            .field("item_bytes", &self.item_bytes)
            .finish_non_exhaustive()
    }
}
