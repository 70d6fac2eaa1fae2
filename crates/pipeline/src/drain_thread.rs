//! The drain thread: hands results to the host while later chunks are in flight.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use super::buffers::BufferCache;
use super::error::{PipelineError, StageKind};
use super::record::StageStream;
use pinlane_core::memory::Part;
use pinlane_core::{DeviceBuf, PoolBuf, Transfer};

/// Takes the bytes of a chunk; `None` after the last.
pub(super) type TakeChunk<'a> = Box<dyn FnMut(Option<&[u8]>) -> io::Result<()> + Send + 'a>;

/// A chunk of results, ready for the drain thread.
pub(super) enum FinishedChunk {
    /// On the device, to be copied by the express lane.
    Express {
        chunk: u64,
        buffer: DeviceBuf<u8>,
        bytes: usize,
    },
    /// In flight to pinned memory.
    Pinned {
        chunk: u64,
        transfer: Transfer<Part<PoolBuf<u8>>>,
        bytes: usize,
    },
}

impl FinishedChunk {
    fn chunk(&self) -> u64 {
        match self {
            Self::Express { chunk, .. } | Self::Pinned { chunk, .. } => *chunk,
        }
    }
}

/// A buffer that the drain thread has emptied.
pub(super) enum FreedBuffer {
    Device(DeviceBuf<u8>),
    Pinned(PoolBuf<u8>),
}

impl FreedBuffer {
    /// Returns it to the cache.
    pub(super) fn keep(self, cache: &BufferCache) {
        match self {
            Self::Device(buffer) => cache.put_device(buffer),
            Self::Pinned(buffer) => drop(buffer),
        }
    }
}

/// What the drain thread does with results.
pub(super) enum DrainTarget<'a> {
    /// Copies them here; the part that is still empty.
    Memory(&'a mut [u8]),
    /// Passes them to this function.
    Taker(TakeChunk<'a>),
}

/// Why the drain thread failed.
pub(super) enum DrainError {
    /// A chunk could not be downloaded or handed over. It also stopped the submitting thread.
    Chunk(PipelineError),
    /// The writer could not be flushed after the last chunk.
    Flush(PipelineError),
}

/// The drain thread.
pub(super) struct DrainThread<'r, 'a> {
    pub(super) bin: DrainTarget<'a>,
    pub(super) stage_stream: StageStream<'r>,
    pub(super) cache: &'r BufferCache,
}

impl DrainThread<'_, '_> {
    /// Handles chunks until there are no more or one fails. The submitting thread then finds its channels
    /// closed.
    pub(super) fn run(
        mut self,
        finished: &Receiver<FinishedChunk>,
        returned: &Sender<FreedBuffer>,
    ) -> Result<(), DrainError> {
        let mut last = None;
        while let Ok(chunk_done) = finished.recv() {
            last = Some(chunk_done.chunk());
            let buffer = self.empty(chunk_done).map_err(DrainError::Chunk)?;
            if let Err(unsent) = returned.send(buffer) {
                unsent.0.keep(self.cache); // the submitting thread needs no more
            }
        }
        match (self.bin, last) {
            (DrainTarget::Taker(mut take), Some(chunk)) => {
                let flushed = take(None);
                flushed.map_err(|error| {
                    DrainError::Flush(PipelineError::at(chunk, StageKind::Write, error))
                })
            }
            _ => Ok(()),
        }
    }

    fn empty(&mut self, chunk_done: FinishedChunk) -> Result<FreedBuffer, PipelineError> {
        match (chunk_done, &mut self.bin) {
            (
                FinishedChunk::Express {
                    chunk,
                    buffer,
                    bytes,
                },
                DrainTarget::Memory(rest),
            ) => {
                let (here, later) = std::mem::take(rest)
                    .split_at_mut_checked(bytes)
                    .expect("room was seen to before");
                *rest = later;
                let source = buffer.range(..bytes);
                let touches = [source.touch()];
                let copied =
                    self.stage_stream
                        .submit(StageKind::Download, chunk, &touches, |stream| {
                            stream.copy_to_host(source, here)
                        });
                match copied {
                    Ok(()) => Ok(FreedBuffer::Device(buffer)),
                    Err(error) => {
                        self.cache.put_device(buffer);
                        Err(PipelineError::at(chunk, StageKind::Download, error))
                    }
                }
            }
            (
                FinishedChunk::Pinned {
                    chunk,
                    transfer,
                    bytes,
                },
                DrainTarget::Taker(take),
            ) => {
                let part = transfer.wait().map_err(|failure| {
                    PipelineError::at(chunk, StageKind::Download, failure.error)
                })?;
                let buffer = part.into_whole();
                take(Some(&buffer[..bytes]))
                    .map_err(|error| PipelineError::at(chunk, StageKind::Write, error))?;
                Ok(FreedBuffer::Pinned(buffer))
            }
            _ => unreachable!("chunks come the way that the bin takes them"),
        }
    }
}
