//! A piece that several threads read at once, each some of it.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::source_file::{ALIGN_BYTES, ReadMode};
use crate::Piece;
use pinlane_core::PinnedBuf;

/// A piece, and the slot that it is read into.
pub(super) struct OpenPiece {
    pub(super) piece: Piece,
    pub(super) mode: ReadMode,
    bytes_per_read: u64,
    /// Start and length of the slot.
    start: NonNull<u8>,
    len: usize,
    slot: Mutex<Option<PinnedBuf<u8>>>,
    /// Slices that nobody has asked for begin with this one.
    next: AtomicUsize,
    /// Slices that have not been read.
    unread: AtomicUsize,
}

// SAFETY: the slot may be used by any thread, and no two slices are the same part of it.
unsafe impl Send for OpenPiece {}
// SAFETY: as above.
unsafe impl Sync for OpenPiece {}

/// Part of a piece that one thread reads. Nobody else has it.
pub(super) struct PieceRead {
    filling: Arc<OpenPiece>,
    number: usize,
}

impl OpenPiece {
    /// In slices of so many bytes: a multiple of the grain, or more than any piece has. The piece,
    /// with all of the grain that it starts in, fits the slot.
    pub(super) fn new(
        piece: Piece,
        mode: ReadMode,
        bytes_per_read: u64,
        mut slot: PinnedBuf<u8>,
    ) -> Arc<Self> {
        let len = piece.bytes.end - base(&piece);
        assert!(len <= slot.len() as u64, "a piece fits its slot");
        assert!(bytes_per_read == u64::MAX || bytes_per_read.is_multiple_of(ALIGN_BYTES));
        Arc::new(Self {
            start: NonNull::from(&mut slot[..]).cast(),
            len: slot.len(),
            next: AtomicUsize::new(0),
            unread: AtomicUsize::new(read_count(&piece, bytes_per_read)),
            bytes_per_read,
            slot: Mutex::new(Some(slot)),
            piece,
            mode,
        })
    }

    /// A slice that nobody has, if there is one.
    pub(super) fn claim(self: &Arc<Self>) -> Option<PieceRead> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < read_count(&self.piece, self.bytes_per_read)).then(|| PieceRead {
            filling: Arc::clone(self),
            number,
        })
    }

    /// The slot, unless somebody has a slice.
    pub(super) fn into_slot(filling: Arc<Self>) -> Option<PinnedBuf<u8>> {
        let slot = Arc::into_inner(filling)?.slot;
        slot.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a slice that nobody has.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.next.load(Ordering::Relaxed) < read_count(&self.piece, self.bytes_per_read)
    }

    /// Where in the slot the first byte of the piece is.
    pub(super) fn start(&self) -> usize {
        (self.piece.bytes.start - base(&self.piece)) as usize
    }
}

impl PieceRead {
    /// What it is part of.
    pub(super) fn open_piece(&self) -> &Arc<OpenPiece> {
        &self.filling
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> Range<u64> {
        let piece = &self.filling.piece;
        let room = self.room();
        let base = base(piece);
        (base + room.start).max(piece.bytes.start)..base + room.end
    }

    /// Where the grains around them go: starts at a page.
    pub(super) fn target(&mut self) -> &mut [u8] {
        let room = self.room();
        let end = (room.end.next_multiple_of(ALIGN_BYTES) as usize).min(self.filling.len);
        let start = room.start as usize;
        // SAFETY: inside of the slot, which is there until the last slice is read: this one is not,
        // while it is borrowed. Other slices have other rooms, since all but the last end at a grain.
        unsafe {
            let first = self.filling.start.add(start);
            std::slice::from_raw_parts_mut(first.as_ptr(), end - start)
        }
    }

    /// It is read. The slot, if it was the last one.
    pub(super) fn finish(self) -> Option<PinnedBuf<u8>> {
        // What the others wrote is seen by the one that gets the slot.
        match self.filling.unread.fetch_sub(1, Ordering::AcqRel) {
            1 => {
                let slot = self.filling.slot.lock();
                slot.unwrap_or_else(PoisonError::into_inner).take()
            }
            _ => None,
        }
    }

    /// Bytes from the base of the piece on.
    fn room(&self) -> Range<u64> {
        let OpenPiece {
            piece,
            bytes_per_read,
            ..
        } = &*self.filling;
        let start = self.number as u64 * bytes_per_read;
        let end = piece.bytes.end - base(piece);
        start..end.min(start.saturating_add(*bytes_per_read))
    }
}

/// The grain that a piece starts in.
fn base(piece: &Piece) -> u64 {
    piece.bytes.start / ALIGN_BYTES * ALIGN_BYTES
}

/// How many slices of so many bytes a piece has.
pub(super) fn read_count(piece: &Piece, bytes_per_read: u64) -> usize {
    (piece.bytes.end - base(piece)).div_ceil(bytes_per_read) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{OpenPiece, Piece, PinnedBuf, ReadMode};
    use pinlane_core::Device;

    const SLOT_BYTES: usize = 5 * 4096;

    fn filling(bytes: std::ops::Range<u64>, bytes_per_read: u64) -> Arc<OpenPiece> {
        let profile = pinlane_model::Profile::builtin("pcie3-x16").expect("built in");
        let sim = pinlane_sim::Sim::new(profile);
        let device = Device::open(&sim, 0).expect("it opens");
        let slot = device.pinned(SLOT_BYTES).expect("enough memory");
        let parts = Vec::new();
        let piece = Piece {
            file: 0,
            bytes,
            parts,
        };
        OpenPiece::new(piece, ReadMode::Buffered, bytes_per_read, slot)
    }

    /// Writes the slices that it gets. The slot, if it has the last.
    fn write(filling: &Arc<OpenPiece>) -> Option<PinnedBuf<u8>> {
        let mut last = None;
        while let Some(mut slice) = filling.claim() {
            let bytes = slice.bytes();
            let skip = bytes.start as usize % 4096;
            let target = slice.target();
            for (place, at) in target[skip..].iter_mut().zip(bytes) {
                *place = at as u8 ^ (at >> 8) as u8;
            }
            assert!(last.is_none(), "nobody ends a piece twice");
            last = slice.finish();
        }
        last
    }

    #[test]
    fn threads_read_their_own_slices_and_the_last_has_the_slot() {
        let slices: &[u64] = match cfg!(miri) {
            true => &[4096], // the others take it minutes
            false => &[4096, 8192, u64::MAX],
        };
        for bytes in [0..1, 4096..3 * 4096, 8200..24_000, 4095..4095 + 4097] {
            for bytes_per_read in slices.iter().copied() {
                let filling = filling(bytes.clone(), bytes_per_read);
                let slots: Vec<_> = thread::scope(|scope| {
                    let threads = [(); 3].map(|()| scope.spawn(|| write(&filling)));
                    let ends = threads.map(|thread| thread.join().expect("no panic"));
                    ends.into_iter().flatten().collect()
                });
                let [slot] = &slots[..] else {
                    panic!("{} threads have the slot", slots.len());
                };
                let read = slot[filling.start()..].iter();
                for (byte, at) in read.zip(bytes.clone()) {
                    assert_eq!(*byte, at as u8 ^ (at >> 8) as u8, "{bytes:?} at {at}");
                }
                assert!(filling.claim().is_none());
            }
        }
    }

    #[test]
    fn a_slice_that_is_dropped_keeps_the_slot() {
        let filling = filling(0..10_000, 4096);
        drop(filling.claim());
        assert!(write(&filling).is_none());
    }

    #[test]
    #[should_panic(expected = "a piece fits its slot")]
    fn too_large_a_piece() {
        filling(4095..4095 + SLOT_BYTES as u64, 4096);
    }
}
