//! A piece that several threads read into one pinned slot.

use std::ops::Range;
use std::sync::Arc;

use super::source_file::{ALIGN_BYTES, ReadMode};
use crate::Piece;
use pinlane_core::PoolBuf;
use pinlane_core::internal::{Claim, SharedSlot, Stride};

/// A pinned slot of a load. Dropped, it is kept for the next load.
pub(super) type SlotBuf = PoolBuf<u8>;

type PieceSlot = Arc<SharedSlot<SlotBuf>>;

pub(super) struct OpenPiece {
    pub(super) piece: Piece,
    pub(super) mode: ReadMode,
    read_bytes: u64,
    pub(super) slot: PieceSlot,
}

/// A part of a piece that one thread reads.
pub(super) struct PieceRead {
    pub(super) open: Arc<OpenPiece>,
    pub(super) claim: Claim<PieceSlot>,
}

impl OpenPiece {
    /// `read_bytes` is a multiple of [`ALIGN_BYTES`], or `u64::MAX` for one read.
    pub(super) fn new(piece: Piece, mode: ReadMode, read_bytes: u64, slot: SlotBuf) -> Arc<Self> {
        let len = (piece.bytes.end - aligned_start(&piece)) as usize;
        assert!(len <= slot.len(), "a piece fits its slot");
        assert!(read_bytes == u64::MAX || read_bytes.is_multiple_of(ALIGN_BYTES));
        let stride = Stride {
            // Direct I/O reads up to an aligned end.
            range: 0..len.next_multiple_of(ALIGN_BYTES as usize).min(slot.len()),
            unit_bytes: usize::try_from(read_bytes).unwrap_or(usize::MAX),
        };
        let units = read_count(&piece, read_bytes);
        Arc::new(Self {
            slot: Arc::new(SharedSlot::new(slot, units, vec![stride])),
            piece,
            mode,
            read_bytes,
        })
    }

    /// Claims the next read, if one is left.
    pub(super) fn claim(self: &Arc<Self>) -> Option<PieceRead> {
        let claim = SharedSlot::claim_arc(&self.slot, 1)?;
        let open = Arc::clone(self);
        Some(PieceRead { open, claim })
    }

    /// The slot, unless a thread is still reading.
    pub(super) fn into_slot(open: Arc<Self>) -> Option<SlotBuf> {
        Arc::into_inner(Arc::into_inner(open)?.slot)?.into_inner()
    }

    /// Offset of the piece in its slot.
    pub(super) fn start(&self) -> usize {
        (self.piece.bytes.start - aligned_start(&self.piece)) as usize
    }
}

impl PieceRead {
    /// The bytes of the file to read.
    pub(super) fn bytes(&self) -> Range<u64> {
        let piece = &self.open.piece;
        let unit = self.claim.units().start as u64;
        let start = aligned_start(piece) + unit * self.open.read_bytes;
        let end = start.saturating_add(self.open.read_bytes);
        start.max(piece.bytes.start)..end.min(piece.bytes.end)
    }

    /// The page-aligned memory for [`bytes`](Self::bytes), widened to [`ALIGN_BYTES`].
    pub(super) fn target(&mut self) -> &mut [u8] {
        let unit = self.claim.units().start;
        let target = self.claim.slices_mut(unit).next();
        target.expect("the slot has one stride")
    }
}

fn aligned_start(piece: &Piece) -> u64 {
    piece.bytes.start / ALIGN_BYTES * ALIGN_BYTES
}

/// Number of reads of a piece.
pub(super) fn read_count(piece: &Piece, read_bytes: u64) -> usize {
    (piece.bytes.end - aligned_start(piece)).div_ceil(read_bytes) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{OpenPiece, Piece, ReadMode, SlotBuf};
    use pinlane_core::Device;
    use pinlane_core::internal::pinned_store;

    const SLOT_BYTES: usize = 5 * 4096;

    fn open_piece(bytes: std::ops::Range<u64>, read_bytes: u64) -> Arc<OpenPiece> {
        let profile = pinlane_model::Profile::builtin("pcie3-x16").expect("built in");
        let sim = pinlane_sim::Sim::new(profile);
        let device = Device::open(&sim, 0).expect("it opens");
        let slot = pinned_store(&device).take(SLOT_BYTES).unwrap();
        let piece = Piece {
            file: 0,
            bytes,
            parts: Vec::new(),
        };
        OpenPiece::new(piece, ReadMode::Buffered, read_bytes, slot)
    }

    /// Fills every read it can claim. Returns the slot if it finishes the last one.
    fn fill(open: &Arc<OpenPiece>) -> Option<SlotBuf> {
        let mut slot = None;
        while let Some(mut read) = open.claim() {
            let bytes = read.bytes();
            let skip = bytes.start as usize % 4096;
            let target = read.target();
            for (byte, at) in target[skip..].iter_mut().zip(bytes) {
                *byte = at as u8 ^ (at >> 8) as u8;
            }
            assert!(slot.is_none(), "the slot is returned once");
            slot = read.claim.finish();
        }
        slot
    }

    #[test]
    fn threads_fill_their_own_reads_and_the_last_gets_the_slot() {
        let read_sizes: &[u64] = match cfg!(miri) {
            true => &[4096], // the others take minutes
            false => &[4096, 8192, u64::MAX],
        };
        for bytes in [0..1, 4096..3 * 4096, 8200..24_000, 4095..4095 + 4097] {
            for read_bytes in read_sizes.iter().copied() {
                let open = open_piece(bytes.clone(), read_bytes);
                let slots: Vec<_> = thread::scope(|scope| {
                    let threads = [(); 3].map(|()| scope.spawn(|| fill(&open)));
                    let ends = threads.map(|thread| thread.join().expect("no panic"));
                    ends.into_iter().flatten().collect()
                });
                let [slot] = &slots[..] else {
                    panic!("{} threads got the slot", slots.len());
                };
                let read = slot[open.start()..].iter();
                for (byte, at) in read.zip(bytes.clone()) {
                    assert_eq!(*byte, at as u8 ^ (at >> 8) as u8, "{bytes:?} at {at}");
                }
                assert!(open.claim().is_none());
            }
        }
    }

    #[test]
    fn an_unfinished_read_keeps_the_slot() {
        let open = open_piece(0..10_000, 4096);
        drop(open.claim());
        assert!(fill(&open).is_none());
    }

    #[test]
    #[should_panic(expected = "a piece fits its slot")]
    fn a_piece_larger_than_its_slot() {
        open_piece(4095..4095 + SLOT_BYTES as u64, 4096);
    }
}
