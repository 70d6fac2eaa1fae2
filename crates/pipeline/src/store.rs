//! How results come back.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use super::drain::{Landing, Returned};
use super::error::{PipelineError, StageKind};
use super::flow::Chunk;
use super::record::Track;
use super::shelf::Shelf;
use pinlane_core::memory::{DeviceSliceMut, PinnedSliceMut};
use pinlane_core::{DeviceBuf, Error, PoolBuf, Result, Scope};

/// Takes the bytes of a chunk; `None` behind the last.
pub(super) type TakeChunk<'a> = Box<dyn FnMut(Option<&[u8]>) -> io::Result<()> + Send + 'a>;

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
    /// Taken when nothing more will come.
    landings: Option<Sender<Landing>>,
    returned: Receiver<Returned>,
    /// Pinned buffers that were made.
    pinned: usize,
    /// The first of them, until it is needed.
    first: Option<PoolBuf<u8>>,
    /// Their size.
    pinned_bytes: usize,
    /// How many there may be: fewer where no more memory can be pinned.
    pinned_at_most: usize,
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
            landings: Some(landings),
            returned,
            pinned: 0,
            first: None,
            pinned_bytes: 0,
            pinned_at_most: usize::MAX,
        };
        let way = match room_bytes {
            Some(room_bytes) => Way::Express(desk, room_bytes),
            None => Way::Each(desk),
        };
        Self::new(way, item_bytes, slots)
    }

    /// There is at least one chunk: see to it that results can come back.
    pub(super) fn prepare(
        &mut self,
        items_at_most: usize,
        shelf: &Shelf,
    ) -> std::result::Result<(), PipelineError> {
        let Way::Each(desk) = &mut self.way else {
            return Ok(());
        };
        desk.pinned_bytes = items_at_most * self.item_bytes;
        let first = shelf.pinned(desk.pinned_bytes);
        desk.first = Some(first.map_err(|error| PipelineError::at(0, StageKind::Download, error))?);
        desk.pinned = 1;
        Ok(())
    }

    /// Nothing more will be stored.
    pub(super) fn close(&mut self) {
        if let Way::Express(desk, _) | Way::Each(desk) = &mut self.way {
            desk.landings = None;
        }
    }

    /// Wait until all is emptied, and keep the buffers.
    pub(super) fn finish(&mut self, shelf: &Shelf) {
        self.close();
        let (Way::Express(desk, _) | Way::Each(desk)) =
            std::mem::replace(&mut self.way, Way::Device(None))
        else {
            return;
        };
        let emptied = desk.returned.iter();
        let unused = desk.first.map(Returned::Pinned);
        emptied.chain(unused).for_each(|buffer| buffer.keep(shelf));
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
        enough(left.len(), bytes, self.item_bytes)?;
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
        track: Track<'_>,
        scope: &'scope Scope<'scope, 'a>,
        shelf: &Shelf,
    ) -> std::result::Result<bool, PipelineError> {
        let failed = |error| PipelineError::at(chunk.number, StageKind::Download, error);
        let bytes = chunk.items * self.item_bytes;
        match &mut self.way {
            Way::Device(_) => Ok(true),
            Way::Pinned(rest) => {
                let left = rest.take().expect("put back below");
                enough(left.len(), bytes, self.item_bytes).map_err(failed)?;
                let (here, later) = left.split_at(bytes);
                *rest = Some(later);
                let buffer = buffer.as_ref().expect("the kernel's output");
                let source = buffer.range(..bytes);
                let touches = [source.touch()];
                let sent = track.submit(StageKind::Download, chunk.number, &touches, |stream| {
                    scope.download(stream, source, here).map(drop)
                });
                sent.map(|()| true).map_err(failed)
            }
            Way::Express(desk, room_bytes) => {
                enough(*room_bytes, bytes, self.item_bytes).map_err(failed)?;
                *room_bytes -= bytes;
                let buffer = buffer.take().expect("the kernel's output");
                let landing = Landing::Express {
                    chunk: chunk.number,
                    buffer,
                    bytes,
                };
                Ok(desk.send(landing))
            }
            Way::Each(desk) => {
                let Some(pinned) = desk.free_pinned(self.slots, shelf) else {
                    return Ok(false);
                };
                let buffer = buffer.as_ref().expect("the kernel's output");
                let source = buffer.range(..bytes);
                let touches = [source.touch()];
                let sent = track.submit(StageKind::Download, chunk.number, &touches, |stream| {
                    Ok(stream.download(source, pinned.part(..bytes))?)
                });
                let transfer = sent.map_err(failed)?;
                let landing = Landing::Pinned {
                    chunk: chunk.number,
                    transfer,
                    bytes,
                };
                Ok(desk.send(landing))
            }
        }
    }
}

impl Desk {
    /// Whether the emptying thread is still there.
    fn send(&self, landing: Landing) -> bool {
        let landings = self.landings.as_ref();
        landings.is_some_and(|landings| landings.send(landing).is_ok())
    }

    /// As for filling: a new one while there are few, else the next that comes back. `None` when
    /// the thread has stopped.
    fn free_pinned(&mut self, slots: usize, shelf: &Shelf) -> Option<PoolBuf<u8>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.pinned < slots.min(self.pinned_at_most) {
            match shelf.pinned(self.pinned_bytes) {
                Ok(buffer) => {
                    self.pinned += 1;
                    return Some(buffer);
                }
                Err(error) => {
                    shelf.note(error);
                    self.pinned_at_most = self.pinned;
                }
            }
        }
        match self.returned.recv() {
            Ok(Returned::Pinned(buffer)) => Some(buffer),
            Ok(Returned::Device(_)) => unreachable!("none was sent"),
            Err(_) => None,
        }
    }
}

/// Whether there is room for a chunk.
fn enough(left_bytes: usize, bytes: usize, item_bytes: usize) -> Result<()> {
    if bytes > left_bytes {
        return Err(Error::LengthMismatch {
            source_len: bytes / item_bytes,
            target_len: left_bytes / item_bytes,
        });
    }
    Ok(())
}
