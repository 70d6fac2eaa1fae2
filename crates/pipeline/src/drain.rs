//! The thread that empties what came back, where the host has work with it.

use std::sync::mpsc::{Receiver, Sender};

use super::error::{PipelineError, StageKind};
use super::record::Track;
use super::shelf::Shelf;
use super::store::TakeChunk;
use pinlane_core::memory::Part;
use pinlane_core::{DeviceBuf, PoolBuf, Transfer};

/// A chunk of results on its way to the host.
pub(super) enum Landing {
    /// On the device, for the express lane.
    Express {
        chunk: u64,
        buffer: DeviceBuf<u8>,
        bytes: usize,
    },
    /// Flying into pinned memory.
    Pinned {
        chunk: u64,
        transfer: Transfer<Part<PoolBuf<u8>>>,
        bytes: usize,
    },
}

impl Landing {
    fn chunk(&self) -> u64 {
        match self {
            Self::Express { chunk, .. } | Self::Pinned { chunk, .. } => *chunk,
        }
    }
}

/// A buffer that is free again.
pub(super) enum Returned {
    Device(DeviceBuf<u8>),
    Pinned(PoolBuf<u8>),
}

impl Returned {
    /// For the next run.
    pub(super) fn keep(self, shelf: &Shelf) {
        match self {
            Self::Device(buffer) => shelf.put_device(buffer),
            Self::Pinned(buffer) => drop(buffer),
        }
    }
}

/// What is done with each chunk.
pub(super) enum Bin<'a> {
    /// Its place in ordinary memory; what is left of it.
    Memory(&'a mut [u8]),
    /// Handed to somebody.
    Taker(TakeChunk<'a>),
}

/// Why the emptying thread ended early.
pub(super) enum Failed {
    /// A chunk could not be fetched or handed on: the feeding thread came to an end over it.
    Chunk(PipelineError),
    /// What was handed on could not be flushed in the end.
    Flush(PipelineError),
}

/// The emptying thread.
pub(super) struct Drain<'r, 'a> {
    pub(super) bin: Bin<'a>,
    pub(super) track: Track<'r>,
    pub(super) shelf: &'r Shelf,
}

impl Drain<'_, '_> {
    /// Empty chunks until there are no more, or one fails; then the feeding thread finds its
    /// channels closed.
    pub(super) fn run(
        mut self,
        landings: &Receiver<Landing>,
        returned: &Sender<Returned>,
    ) -> Result<(), Failed> {
        let mut last = None;
        while let Ok(landing) = landings.recv() {
            last = Some(landing.chunk());
            let buffer = self.empty(landing).map_err(Failed::Chunk)?;
            if let Err(unsent) = returned.send(buffer) {
                unsent.0.keep(self.shelf); // the feeding thread needs no more
            }
        }
        match (self.bin, last) {
            (Bin::Taker(mut take), Some(chunk)) => {
                let flushed = take(None);
                flushed.map_err(|error| {
                    Failed::Flush(PipelineError::at(chunk, StageKind::Write, error))
                })
            }
            _ => Ok(()),
        }
    }

    fn empty(&mut self, landing: Landing) -> Result<Returned, PipelineError> {
        match (landing, &mut self.bin) {
            (
                Landing::Express {
                    chunk,
                    buffer,
                    bytes,
                },
                Bin::Memory(rest),
            ) => {
                let (here, later) = std::mem::take(rest)
                    .split_at_mut_checked(bytes)
                    .expect("room was seen to before");
                *rest = later;
                let source = buffer.range(..bytes);
                let touches = [source.touch()];
                let copied = self
                    .track
                    .submit(StageKind::Download, chunk, &touches, |stream| {
                        stream.copy_to_host(source, here)
                    });
                match copied {
                    Ok(()) => Ok(Returned::Device(buffer)),
                    Err(error) => {
                        self.shelf.put_device(buffer);
                        Err(PipelineError::at(chunk, StageKind::Download, error))
                    }
                }
            }
            (
                Landing::Pinned {
                    chunk,
                    transfer,
                    bytes,
                },
                Bin::Taker(take),
            ) => {
                let part = transfer.wait().map_err(|failure| {
                    PipelineError::at(chunk, StageKind::Download, failure.error)
                })?;
                let buffer = part.into_whole();
                take(Some(&buffer[..bytes]))
                    .map_err(|error| PipelineError::at(chunk, StageKind::Write, error))?;
                Ok(Returned::Pinned(buffer))
            }
            _ => unreachable!("chunks come the way that the bin takes them"),
        }
    }
}
