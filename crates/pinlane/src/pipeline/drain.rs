//! The thread that empties what came back, where the host has work with it.

use std::sync::mpsc::{Receiver, Sender};

use super::error::{PipelineError, StageKind};
use super::record::Recorder;
use super::shelf::Shelf;
use super::store::TakeChunk;
use crate::memory::Part;
use crate::{DeviceBuf, PinnedBuf, Stream, Transfer};

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
        transfer: Transfer<Part<PinnedBuf<u8>>>,
        bytes: usize,
    },
}

/// A buffer that is free again.
pub(super) enum Returned {
    Device(DeviceBuf<u8>),
    Pinned(PinnedBuf<u8>),
}

/// What is done with each chunk.
pub(super) enum Bin<'a> {
    /// Its place in ordinary memory; what is left of it.
    Memory(&'a mut [u8]),
    /// Handed to somebody.
    Taker(TakeChunk<'a>),
}

/// The emptying thread.
pub(super) struct Drain<'r, 'a> {
    pub(super) bin: Bin<'a>,
    pub(super) stream: &'r Stream,
    pub(super) shelf: &'r Shelf,
    pub(super) recorder: Option<&'r Recorder>,
}

impl Drain<'_, '_> {
    /// Empty chunks until there are no more, or one fails; then the feeding thread finds its
    /// channels closed.
    pub(super) fn run(
        mut self,
        landings: &Receiver<Landing>,
        returned: &Sender<Returned>,
    ) -> Result<(), PipelineError> {
        let mut failed = Ok(());
        while let Ok(landing) = landings.recv() {
            match self.empty(landing) {
                Ok(buffer) => {
                    if let Err(unsent) = returned.send(buffer) {
                        // The feeding thread needs no more.
                        self.keep(unsent.0);
                    }
                }
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        failed
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
                let mut copy = || self.stream.copy_to_host(source, here);
                let copied = match self.recorder {
                    Some(recorder) => {
                        recorder.around(StageKind::Download, chunk, 3, self.stream, &mut copy)
                    }
                    None => copy(),
                };
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
                match take(&buffer[..bytes]) {
                    Ok(()) => Ok(Returned::Pinned(buffer)),
                    Err(error) => {
                        self.shelf.put_pinned(buffer);
                        Err(PipelineError::at(chunk, StageKind::Write, error))
                    }
                }
            }
            _ => unreachable!("chunks come the way that the bin takes them"),
        }
    }

    fn keep(&self, buffer: Returned) {
        match buffer {
            Returned::Device(buffer) => self.shelf.put_device(buffer),
            Returned::Pinned(buffer) => self.shelf.put_pinned(buffer),
        }
    }
}
