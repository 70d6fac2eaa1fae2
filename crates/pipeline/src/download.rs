//! Downloading the results of chunks.

use super::buffer_cache::BufferCache;
use super::drain_thread::{FinishedChunk, FreedBuffer, Results, TakeChunk};
use super::error::{PipelineError, RunResult, StageKind};
use super::kernel_call::Chunk;
use super::stage_recorder::StageStream;
use pinlane_core::internal::{Receiver, Sender};
use pinlane_core::memory::{DeviceSlice, DeviceSliceMut, PinnedSliceMut};
use pinlane_core::{DeviceBuf, Error, PoolBuf, Result, Scope, Stream};
use pinlane_model::pipeline::Memory;

/// Where the bytes of the output go.
pub(super) enum TargetKind<'a> {
    Pinned(PinnedSliceMut<'a, u8>),
    Pageable(&'a mut [u8]),
    Device(DeviceSliceMut<'a, u8>),
    Each(TakeChunk<'a>),
}

/// The output as bytes.
pub(super) struct TargetSpec<'a> {
    pub(super) target: TargetKind<'a>,
    pub(super) item_bytes: usize,
}

impl TargetSpec<'_> {
    pub(super) fn known_items(&self) -> Option<usize> {
        self.known_bytes().map(|bytes| bytes / self.item_bytes)
    }

    /// The places of the first items and of the others, in an output of known length.
    pub(super) fn split(self, items: usize) -> Result<(Self, Self)> {
        let at = items * self.item_bytes;
        let (first, rest) = match self.target {
            TargetKind::Pinned(slice) => {
                let (first, rest) = slice.split_at(at);
                (TargetKind::Pinned(first), TargetKind::Pinned(rest))
            }
            TargetKind::Pageable(slice) => {
                let (first, rest) = slice.split_at_mut(at);
                (TargetKind::Pageable(first), TargetKind::Pageable(rest))
            }
            TargetKind::Device(slice) => {
                let (first, rest) = slice.split_at(at);
                (TargetKind::Device(first), TargetKind::Device(rest))
            }
            TargetKind::Each(_) => {
                return Err(Error::InvalidConfig {
                    field: "output",
                    reason: "of known length",
                });
            }
        };
        let item_bytes = self.item_bytes;
        let part = |target| Self { target, item_bytes };
        Ok((part(first), part(rest)))
    }

    /// Where the bytes go, for the planner.
    pub(super) fn memory(&self) -> Memory {
        match self.target {
            TargetKind::Pinned(_) | TargetKind::Each(_) => Memory::Pinned,
            TargetKind::Pageable(_) => Memory::Express,
            TargetKind::Device(_) => Memory::Device,
        }
    }

    /// Total bytes, if known.
    pub(super) fn known_bytes(&self) -> Option<usize> {
        match &self.target {
            TargetKind::Pinned(slice) => Some(slice.len()),
            TargetKind::Pageable(slice) => Some(slice.len()),
            TargetKind::Device(slice) => Some(slice.len()),
            TargetKind::Each(_) => None,
        }
    }
}

/// Brings results back, on the submitting thread.
pub(super) struct ChunkTarget<'a> {
    pub(super) way: TargetState<'a>,
    pub(super) item_bytes: usize,
}

pub(super) enum TargetState<'a> {
    /// Copied by the device into pinned memory; the part that is still empty.
    Pinned(Option<PinnedSliceMut<'a, u8>>),
    /// Written by the kernel to its final place; the part that is still empty.
    Device(Option<DeviceSliceMut<'a, u8>>),
    /// Copied by the drain thread, with room for this many more bytes.
    Express(DrainChannels, usize),
    /// Handed over by the drain thread, through pinned memory.
    Each(DrainChannels),
}

/// The channels to and from the drain thread.
pub(super) struct DrainChannels {
    /// `None` once everything was sent.
    finished: Option<Sender<FinishedChunk>>,
    returned: Receiver<FreedBuffer>,
    /// Pinned buffers allocated.
    pinned: usize,
    /// The first of them, until it is used.
    first: Option<PoolBuf<u8>>,
    /// Their size.
    pinned_bytes: usize,
    /// How many there may be: fewer if no more memory can be pinned.
    pinned_at_most: usize,
}

impl<'a> ChunkTarget<'a> {
    /// Allocates what the first chunk of results needs.
    pub(super) fn prepare(&mut self, items_at_most: usize, cache: &BufferCache) -> RunResult<()> {
        let TargetState::Each(channels) = &mut self.way else {
            return Ok(());
        };
        channels.pinned_bytes = items_at_most * self.item_bytes;
        let first = cache.pinned(channels.pinned_bytes);
        channels.first =
            Some(first.map_err(|error| PipelineError::at(0, StageKind::Download, error))?);
        channels.pinned = 1;
        Ok(())
    }

    /// Tells the drain thread that no more results will come, waits for it, and returns the buffers to the cache.
    pub(super) fn finish(&mut self, cache: &BufferCache) {
        let (TargetState::Express(mut channels, _) | TargetState::Each(mut channels)) =
            std::mem::replace(&mut self.way, TargetState::Device(None))
        else {
            return;
        };
        channels.finished = None;
        let emptied = std::iter::from_fn(|| channels.returned.recv());
        let unused = channels.first.map(FreedBuffer::Pinned);
        emptied.chain(unused).for_each(|buffer| buffer.keep(cache));
    }

    /// Whether results stay on the device.
    pub(super) fn keeps(&self) -> bool {
        matches!(self.way, TargetState::Device(_))
    }

    /// The place for the results of a chunk, if they stay on the device.
    pub(super) fn kept(&mut self, chunk: &Chunk) -> Result<Option<DeviceSliceMut<'a, u8>>> {
        let TargetState::Device(rest) = &mut self.way else {
            return Ok(None);
        };
        let bytes = chunk.items * self.item_bytes;
        let left = rest.take().expect("put back below");
        enough(left.len(), bytes, self.item_bytes)?;
        let (here, later) = left.split_at(bytes);
        *rest = Some(later);
        Ok(Some(here))
    }

    /// The next buffer that the drain thread has emptied.
    pub(super) fn returned_device(&self) -> Option<DeviceBuf<u8>> {
        let TargetState::Express(channels, _) = &self.way else {
            return None;
        };
        match channels.returned.recv()? {
            FreedBuffer::Device(buffer) => Some(buffer),
            FreedBuffer::Pinned(_) => unreachable!("none was sent"),
        }
    }

    /// Brings back the results of a chunk, which are in `buffer`.
    pub(super) fn store<'scope>(
        &mut self,
        chunk: &Chunk,
        buffer: &mut Option<DeviceBuf<u8>>,
        stage_stream: StageStream<'_>,
        scope: &'scope Scope<'scope, 'a>,
        cache: &BufferCache,
    ) -> RunResult<()> {
        let failed = |error| PipelineError::at(chunk.number, StageKind::Download, error);
        let bytes = chunk.items * self.item_bytes;
        let (channels, results) = match &mut self.way {
            TargetState::Device(_) => return Ok(()),
            TargetState::Pinned(rest) => {
                let left = rest.take().expect("put back below");
                enough(left.len(), bytes, self.item_bytes).map_err(failed)?;
                let (here, later) = left.split_at(bytes);
                *rest = Some(later);
                let download = |stream: &Stream, source: DeviceSlice<'_, u8>| {
                    scope.download(stream, source, here).map(drop)
                };
                return download_from(buffer, bytes, chunk, stage_stream, download).map_err(failed);
            }
            TargetState::Express(channels, room_bytes) => {
                enough(*room_bytes, bytes, self.item_bytes).map_err(failed)?;
                *room_bytes -= bytes;
                let buffer = buffer.take().expect("the kernel's output");
                (channels, Results::Express(buffer))
            }
            TargetState::Each(channels) => {
                let pinned = channels.free_pinned(cache);
                let pinned = pinned.ok_or_else(PipelineError::stopped)?;
                let download = |stream: &Stream, source: DeviceSlice<'_, u8>| {
                    Ok(stream.download(source, pinned.part(..bytes))?)
                };
                let sent = download_from(buffer, bytes, chunk, stage_stream, download);
                (channels, Results::Pinned(sent.map_err(failed)?))
            }
        };
        channels.send(FinishedChunk {
            chunk: chunk.number,
            bytes,
            results,
        })
    }
}

/// Submits a download of the first `bytes` of the kernel's output.
fn download_from<R>(
    buffer: &Option<DeviceBuf<u8>>,
    bytes: usize,
    chunk: &Chunk,
    stage_stream: StageStream<'_>,
    download: impl FnOnce(&Stream, DeviceSlice<'_, u8>) -> Result<R>,
) -> Result<R> {
    let source = buffer.as_ref().expect("the kernel's output");
    let source = source.range(..bytes);
    let touches = [source.touch()];
    stage_stream.submit(StageKind::Download, chunk.number, &touches, |stream| {
        download(stream, source)
    })
}

impl DrainChannels {
    pub(super) fn new(
        finished: Sender<FinishedChunk>,
        returned: Receiver<FreedBuffer>,
        slots: usize,
    ) -> Self {
        Self {
            finished: Some(finished),
            returned,
            pinned: 0,
            first: None,
            pinned_bytes: 0,
            pinned_at_most: slots,
        }
    }

    /// Sends a chunk. Fails if the drain thread has stopped.
    fn send(&self, chunk: FinishedChunk) -> RunResult<()> {
        let finished = self.finished.as_ref();
        let sent = finished.and_then(|finished| finished.send(chunk).ok());
        sent.ok_or_else(PipelineError::stopped)
    }

    /// A pinned buffer: a new one while there are few, else the next that the drain thread has emptied.
    /// `None` if it has stopped.
    fn free_pinned(&mut self, cache: &BufferCache) -> Option<PoolBuf<u8>> {
        let mut another = self.first.take();
        if another.is_none() {
            let (bytes, at_most) = (self.pinned_bytes, &mut self.pinned_at_most);
            another = cache.another_pinned(bytes, self.pinned, at_most);
            self.pinned += usize::from(another.is_some());
        }
        another.or_else(|| match self.returned.recv()? {
            FreedBuffer::Pinned(buffer) => Some(buffer),
            FreedBuffer::Device(_) => unreachable!("none was sent"),
        })
    }
}

/// Checks that a chunk fits the rest of the target.
fn enough(left_bytes: usize, bytes: usize, item_bytes: usize) -> Result<()> {
    if bytes > left_bytes {
        return Err(Error::LengthMismatch {
            source_len: bytes / item_bytes,
            target_len: left_bytes / item_bytes,
        });
    }
    Ok(())
}
