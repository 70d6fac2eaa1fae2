//! The drain thread: hands results to the host while later chunks are in flight.

use std::io;

use super::buffer_cache::BufferCache;
use super::error::{PipelineError, RunResult, StageKind};
use super::stage_recorder::StageStream;
use pinlane_core::internal::{Receiver, Sender};
use pinlane_core::memory::Part;
use pinlane_core::{DeviceBuf, PoolBuf, Transfer};

/// Takes the bytes of a chunk; `None` after the last.
pub(super) type TakeChunk<'a> = Box<dyn FnMut(Option<&[u8]>) -> io::Result<()> + Send + 'a>;

/// A chunk of results, ready for the drain thread.
pub(super) struct FinishedChunk {
    pub(super) chunk: u64,
    pub(super) bytes: usize,
    pub(super) results: Results,
}

/// Where the results of a chunk are.
pub(super) enum Results {
    /// On the device, to be copied by the express lane.
    Express(DeviceBuf<u8>),
    /// In flight to pinned memory.
    Pinned(Transfer<Part<PoolBuf<u8>>>),
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
    /// Handles chunks until none is left or one fails, which closes the channels.
    pub(super) fn run(
        mut self,
        finished: &Receiver<FinishedChunk>,
        returned: &Sender<FreedBuffer>,
    ) -> Result<(), DrainError> {
        let mut last = None;
        while let Some(chunk_done) = finished.recv() {
            last = Some(chunk_done.chunk);
            let buffer = self.empty(chunk_done).map_err(DrainError::Chunk)?;
            if let Err(unsent) = returned.send(buffer) {
                unsent.0.keep(self.cache); // the submitting thread needs no more
            }
        }
        match (self.bin, last) {
            (DrainTarget::Taker(mut take), Some(chunk)) => {
                let failed = |error| PipelineError::at(chunk, StageKind::Write, error);
                take(None).map_err(|error| DrainError::Flush(failed(error)))
            }
            _ => Ok(()),
        }
    }

    fn empty(&mut self, finished: FinishedChunk) -> RunResult<FreedBuffer> {
        let FinishedChunk {
            chunk,
            bytes,
            results,
        } = finished;
        let failed = |error| PipelineError::at(chunk, StageKind::Download, error);
        match (results, &mut self.bin) {
            (Results::Express(buffer), DrainTarget::Memory(rest)) => {
                let here = rest
                    .split_off_mut(..bytes)
                    .expect("room was seen to before");
                let source = buffer.range(..bytes);
                let copied = self.stage_stream.submit(
                    StageKind::Download,
                    chunk,
                    &[source.touch()],
                    |stream| stream.copy_to_host(source, here),
                );
                if let Err(error) = copied {
                    self.cache.put_device(buffer);
                    return Err(failed(error));
                }
                Ok(FreedBuffer::Device(buffer))
            }
            (Results::Pinned(transfer), DrainTarget::Taker(take)) => {
                let part = transfer.wait().map_err(|failure| failed(failure.error))?;
                let buffer = part.into_whole();
                take(Some(&buffer[..bytes]))
                    .map_err(|error| PipelineError::at(chunk, StageKind::Write, error))?;
                Ok(FreedBuffer::Pinned(buffer))
            }
            _ => unreachable!("chunks come the way that the bin takes them"),
        }
    }
}
