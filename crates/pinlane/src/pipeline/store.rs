//! How results come back.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use super::drain::{Landing, Returned};
use super::error::{PipelineError, StageKind};
use super::flow::Chunk;
use super::shelf::Shelf;
use crate::memory::{DeviceSliceMut, PinnedSliceMut};
use crate::{DeviceBuf, Error, PinnedBuf, Result, Scope, Stream};

/// Takes the bytes of a chunk.
pub(super) type TakeChunk<'a> = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send + 'a>;

/// Where the bytes of the output belong.
pub(super) enum Target<'a> {
    Pinned(PinnedSliceMut<'a, u8>),
    Pageable(&'a mut [u8]),
    Device(DeviceSliceMut<'a, u8>),
    Each(TakeChunk<'a>),
}

/// The output, in bytes.
pub(super) struct Sink<'a> {
    pub(super) target: Target<'a>,
    pub(super) item_bytes: usize,
}

impl Sink<'_> {
    /// All bytes, where that is known.
    pub(super) fn known_bytes(&self) -> Option<usize> {
        match &self.target {
            Target::Pinned(slice) => Some(slice.len()),
            Target::Pageable(slice) => Some(slice.len()),
            Target::Device(slice) => Some(slice.len()),
            Target::Each(_) => None,
        }
    }
}

/// The feeding thread's end of the output.
pub(super) struct Store<'a> {
    way: Way<'a>,
    item_bytes: usize,
    slots: usize,
}

enum Way<'a> {
    /// Copied there by the device; what is left of it.
    Pinned(Option<PinnedSliceMut<'a, u8>>),
    /// Written there by the kernel; what is left of it.
    Device(Option<DeviceSliceMut<'a, u8>>),
    /// Emptied by a thread of its own, with room for so many bytes more.
    Express(Desk, usize),
    /// The same, by way of pinned memory.
    Each(Desk),
}

/// What goes to the emptying thread and comes back from it.
struct Desk {
    landings: Sender<Landing>,
    returned: Receiver<Returned>,
    /// Pinned buffers that were made.
    pinned: usize,
}

impl<'a> Store<'a> {
    fn new(way: Way<'a>, item_bytes: usize, slots: usize) -> Self {
        Self {
            way,
            item_bytes,
            slots,
        }
    }

    pub(super) fn pinned(target: PinnedSliceMut<'a, u8>, item_bytes: usize, slots: usize) -> Self {
        Self::new(Way::Pinned(Some(target)), item_bytes, slots)
    }

    pub(super) fn device(target: DeviceSliceMut<'a, u8>, item_bytes: usize, slots: usize) -> Self {
        Self::new(Way::Device(Some(target)), item_bytes, slots)
    }

    /// Results go to another thread; `room_bytes` where there is a limit.
    pub(super) fn drained(
        (landings, returned): (Sender<Landing>, Receiver<Returned>),
        room_bytes: Option<usize>,
        item_bytes: usize,
        slots: usize,
    ) -> Self {
        let desk = Desk {
            landings,
            returned,
            pinned: 0,
        };
        let way = match room_bytes {
            Some(room_bytes) => Way::Express(desk, room_bytes),
            None => Way::Each(desk),
        };
        Self::new(way, item_bytes, slots)
    }

    /// Whether results stay on the device.
    pub(super) fn keeps(&self) -> bool {
        matches!(self.way, Way::Device(_))
    }

    /// Where the kernel is to put a chunk's results, if they stay on the device.
    pub(super) fn kept(&mut self, chunk: &Chunk) -> Result<Option<DeviceSliceMut<'a, u8>>> {
        let Way::Device(rest) = &mut self.way else {
            return Ok(None);
        };
        let bytes = chunk.items * self.item_bytes;
        let left = rest.take().expect("put back below");
        enough(left.len(), bytes)?;
        let (here, later) = left.split_at(bytes);
        *rest = Some(later);
        Ok(Some(here))
    }

    /// A buffer that has come back from the emptying thread.
    pub(super) fn returned_device(&mut self) -> Option<DeviceBuf<u8>> {
        match &mut self.way {
            Way::Express(desk, _) => match desk.returned.recv() {
                Ok(Returned::Device(buffer)) => Some(buffer),
                Ok(Returned::Pinned(_)) => unreachable!("none was sent"),
                Err(_) => None,
            },
            _ => None,
        }
    }

    /// Bring a chunk's results, which are in `buffer`, where they belong. `Ok(false)` when the
    /// emptying thread has stopped.
    pub(super) fn store<'scope>(
        &mut self,
        chunk: &Chunk,
        buffer: &mut Option<DeviceBuf<u8>>,
        stream: &Stream,
        scope: &'scope Scope<'scope, 'a>,
        shelf: &Shelf,
    ) -> std::result::Result<bool, PipelineError> {
        let failed = |error| PipelineError::at(chunk.number, StageKind::Download, error);
        let bytes = chunk.items * self.item_bytes;
        match &mut self.way {
            Way::Device(_) => Ok(true),
            Way::Pinned(rest) => {
                let left = rest.take().expect("put back below");
                enough(left.len(), bytes).map_err(failed)?;
                let (here, later) = left.split_at(bytes);
                *rest = Some(later);
                let buffer = buffer.as_ref().expect("the kernel's output");
                let sent = scope.download(stream, buffer.range(..bytes), here);
                sent.map(|_| true).map_err(failed)
            }
            Way::Express(desk, room_bytes) => {
                enough(*room_bytes, bytes).map_err(failed)?;
                *room_bytes -= bytes;
                let buffer = buffer.take().expect("the kernel's output");
                let landing = Landing::Express {
                    chunk: chunk.number,
                    buffer,
                    bytes,
                };
                Ok(desk.landings.send(landing).is_ok())
            }
            Way::Each(desk) => {
                let Some(pinned) = desk.free_pinned(bytes, self.slots, shelf).map_err(failed)?
                else {
                    return Ok(false);
                };
                let buffer = buffer.as_ref().expect("the kernel's output");
                let sent = stream.download(buffer.range(..bytes), pinned.part(..bytes));
                let transfer = sent.map_err(|failure| failed(failure.into()))?;
                let landing = Landing::Pinned {
                    chunk: chunk.number,
                    transfer,
                    bytes,
                };
                Ok(desk.landings.send(landing).is_ok())
            }
        }
    }
}

impl Desk {
    /// As for filling: a new one while there are few, else the next that comes back. `None` when
    /// the thread has stopped.
    fn free_pinned(
        &mut self,
        bytes: usize,
        slots: usize,
        shelf: &Shelf,
    ) -> Result<Option<PinnedBuf<u8>>> {
        if self.pinned < slots {
            match shelf.pinned(bytes) {
                Ok(buffer) => {
                    self.pinned += 1;
                    return Ok(Some(buffer));
                }
                Err(error) if self.pinned == 0 => return Err(error),
                Err(_) => {}
            }
        }
        match self.returned.recv() {
            Ok(Returned::Pinned(buffer)) if buffer.len() >= bytes => Ok(Some(buffer)),
            Ok(Returned::Pinned(_)) => shelf.pinned(bytes).map(Some), // a longer chunk than before
            Ok(Returned::Device(_)) => unreachable!("none was sent"),
            Err(_) => Ok(None),
        }
    }
}

/// Whether there is room for a chunk.
fn enough(left_bytes: usize, bytes: usize) -> Result<()> {
    if bytes > left_bytes {
        return Err(Error::LengthMismatch {
            source_len: bytes,
            target_len: left_bytes,
        });
    }
    Ok(())
}
