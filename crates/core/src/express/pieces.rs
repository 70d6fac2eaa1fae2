//! The pieces of a copy, and how they are cut into chunks.
//!
//! A piece is host memory and its place on the device. All pieces are laid out one after another in
//! a sequence of *staged bytes*. Chunks cut that sequence: each passes through one slot of the ring,
//! and lanes work on slices of it. A copy of one slice of memory has one piece.

use std::ops::Range;

use pinlane_driver::DevicePtr;
use pinlane_kernels::Piece as TableEntry;

/// First chunk of a copy: large enough to be worth a copy of its own, small enough to be staged in
/// some ten microseconds, so that the link starts early.
const FIRST_CHUNK_BYTES: usize = 256 << 10;

/// The same for many pieces: a kernel follows each chunk, and the next one waits for it.
const FIRST_CHUNK_OF_PIECES_BYTES: usize = 2 << 20;

/// A chunk has about this many slices, so that all lanes find work in it.
const SLICES: usize = 64;

/// Smaller slices cost more to hand out than they gain in balance. Larger ones leave lanes idle at
/// the end.
const SLICE_BYTES: Range<usize> = 16 << 10..128 << 10;

/// Chunks start at multiples of this, so that they never split an element and vector copies stay
/// aligned.
const GRAIN_BYTES: usize = 4096;

/// Kernels move words of this size if staged and final address have the same remainder.
pub(super) const WORD_BYTES: usize = 16;

/// Most pieces of one chunk, which bounds the size of its table.
const CHUNK_PIECES_AT_MOST: usize = 8192;

/// Host memory and its place on the device.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Only read if it is the source.
    pub(super) host: *mut u8,
    pub(super) device: DevicePtr,
    /// Where it starts in the staged bytes.
    pub(super) offset: usize,
    /// Its length in staged bytes.
    pub(super) bytes: usize,
}

// SAFETY: only addresses. The copy that they belong to decides who accesses the memory.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    fn end(&self) -> usize {
        self.offset + self.bytes
    }
}

/// The part of a piece that lies in some range of the staged bytes.
#[derive(Clone, Copy)]
pub(super) struct PiecePart<'a> {
    pub(super) piece: &'a Piece,
    /// Where the part starts in the piece.
    pub(super) skip: usize,
    pub(super) bytes: usize,
}

impl PiecePart<'_> {
    /// Where it starts in the staged bytes.
    pub(super) fn offset(&self) -> usize {
        self.piece.offset + self.skip
    }
}

/// Bytes that are contiguous both in the staged bytes and on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) offset: usize,
    pub(super) device: DevicePtr,
    pub(super) bytes: usize,
}

/// Staged bytes that pass through one slot of the ring.
pub(super) struct Chunk {
    pub(super) staged: Range<usize>,
    /// Pieces that lie in it, at least in part.
    pieces: Range<usize>,
    /// Start of the slot that is reserved for the table of pieces.
    pub(super) table_bytes: usize,
}

impl Chunk {
    pub(super) fn slices(&self) -> usize {
        slices(self.staged.len())
    }

    /// Staged bytes of one slice.
    pub(super) fn slice(&self, slice: usize) -> Range<usize> {
        let bytes = slice_bytes(self.staged.len());
        let start = self.staged.start + slice * bytes;
        start..self.staged.end.min(start + bytes)
    }

    /// Where a staged byte lies in the slot, and in the slot's scratch memory on the device.
    pub(super) fn slot_offset(&self, staged: usize) -> usize {
        self.table_bytes + (staged - self.staged.start / WORD_BYTES * WORD_BYTES)
    }

    /// Where a table of `entries` lies in the slot: right before the data.
    pub(super) fn table_offset(&self, entries: usize) -> usize {
        self.table_bytes - (entries * size_of::<TableEntry>()).next_multiple_of(WORD_BYTES)
    }
}

/// All pieces of a copy, in the order in which they are staged.
pub(super) struct PieceList {
    pub(super) list: Vec<Piece>,
    pub(super) staged_bytes: usize,
}

impl PieceList {
    pub(super) fn single(host: *mut u8, device: DevicePtr, staged_bytes: usize) -> Self {
        Self {
            list: vec![Piece {
                host,
                device,
                offset: 0,
                bytes: staged_bytes,
            }],
            staged_bytes,
        }
    }

    pub(super) fn with_capacity(pieces: usize) -> Self {
        Self {
            list: Vec::with_capacity(pieces),
            staged_bytes: 0,
        }
    }

    /// Appends a piece, aligned so that kernels can move it in words. Pieces that are neighbours on
    /// the device are neighbours in the staged bytes, too.
    pub(super) fn push(&mut self, host: *mut u8, device: DevicePtr, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let (end, remainder) = (self.staged_bytes, device.0 as usize % WORD_BYTES);
        let offset = end + (remainder + WORD_BYTES - end % WORD_BYTES) % WORD_BYTES;
        self.list.push(Piece {
            host,
            device,
            offset,
            bytes,
        });
        self.staged_bytes = offset + bytes;
    }

    /// Cuts the staged bytes into chunks for slots of `slot_bytes`.
    pub(super) fn chunks(&self, slot_bytes: usize) -> Vec<Chunk> {
        // The table takes at most a quarter of the slot.
        let entry_bytes = size_of::<TableEntry>();
        let pieces_at_most = CHUNK_PIECES_AT_MOST.min(slot_bytes / 4 / entry_bytes);
        let table_bytes = match self.list.len() {
            0 | 1 => 0,
            len => (len.min(pieces_at_most) * entry_bytes).next_multiple_of(GRAIN_BYTES),
        };
        self.cut(slot_bytes - table_bytes, pieces_at_most, table_bytes)
    }

    fn cut(&self, chunk_bytes: usize, pieces_at_most: usize, table_bytes: usize) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for staged in chunk_ranges(self.staged_bytes, chunk_bytes, self.list.len() > 1) {
            let mut pieces = self.pieces_in(&staged);
            let mut start = staged.start;
            while pieces.len() > pieces_at_most {
                let cut = pieces.start + pieces_at_most;
                let end = self.list[cut].offset;
                chunks.push(Chunk {
                    staged: start..end,
                    pieces: pieces.start..cut,
                    table_bytes,
                });
                (start, pieces.start) = (end, cut);
            }
            if !pieces.is_empty() {
                chunks.push(Chunk {
                    staged: start..staged.end,
                    pieces,
                    table_bytes,
                });
            }
        }
        chunks
    }

    fn pieces_in(&self, staged: &Range<usize>) -> Range<usize> {
        let pieces = &self.list;
        let start = pieces.partition_point(|piece| piece.end() <= staged.start);
        let end = pieces.partition_point(|piece| piece.offset < staged.end);
        start..end.max(start)
    }

    /// What lies in `staged`, a range inside of `chunk`.
    pub(super) fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        staged: Range<usize>,
    ) -> impl Iterator<Item = PiecePart<'a>> {
        let pieces = &self.list[chunk.pieces.clone()];
        let first = pieces.partition_point(|piece| piece.end() <= staged.start);
        pieces[first..]
            .iter()
            .take_while(move |piece| piece.offset < staged.end)
            .map(move |piece| {
                let start = staged.start.max(piece.offset);
                PiecePart {
                    piece,
                    skip: start - piece.offset,
                    bytes: staged.end.min(piece.end()) - start,
                }
            })
    }

    /// All of `chunk`, with neighbours on the device merged.
    pub(super) fn runs(&self, chunk: &Chunk) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for part in self.parts(chunk, chunk.staged.clone()) {
            let (offset, device) = (part.offset(), part.piece.device.offset(part.skip));
            match runs.last_mut() {
                Some(last)
                    if last.offset + last.bytes == offset
                        && last.device.offset(last.bytes) == device =>
                {
                    last.bytes += part.bytes;
                }
                _ => runs.push(Run {
                    offset,
                    device,
                    bytes: part.bytes,
                }),
            }
        }
        runs
    }
}

/// Ranges of a copy of `bytes`, in order and without holes: doubling up to `chunk_bytes`, then
/// halving towards the end, so that little is left to do when the last bytes arrive.
fn chunk_ranges(bytes: usize, chunk_bytes: usize, many_pieces: bool) -> Vec<Range<usize>> {
    debug_assert!(chunk_bytes >= GRAIN_BYTES && chunk_bytes.is_multiple_of(GRAIN_BYTES));
    let first = match many_pieces {
        true => FIRST_CHUNK_OF_PIECES_BYTES.min(chunk_bytes),
        false => FIRST_CHUNK_BYTES.min(chunk_bytes),
    };
    let (mut size, mut at, mut ranges) = (first, 0, Vec::new());
    while at < bytes {
        let left = bytes - at;
        let next = if left < 2 * size {
            (left / 2).next_multiple_of(GRAIN_BYTES).max(first)
        } else {
            size
        };
        let next = next.min(left).min(chunk_bytes);
        ranges.push(at..at + next);
        at += next;
        size = (2 * size).min(chunk_bytes);
    }
    ranges
}

/// Bytes of a slice of a chunk of `bytes`; the last slice may be shorter.
fn slice_bytes(bytes: usize) -> usize {
    (bytes / SLICES)
        .next_multiple_of(GRAIN_BYTES)
        .clamp(SLICE_BYTES.start, SLICE_BYTES.end)
}

fn slices(bytes: usize) -> usize {
    bytes.div_ceil(slice_bytes(bytes)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[usize], gap: usize) -> PieceList {
        let (mut list, mut device) = (PieceList::with_capacity(sizes.len()), 0x1000);
        for &bytes in sizes {
            let host = std::ptr::without_provenance_mut(8);
            list.push(host, DevicePtr(device as u64), bytes);
            device += bytes + gap;
        }
        list
    }

    #[test]
    fn every_byte_is_in_one_part_of_one_slice() {
        let count = if cfg!(miri) { 60 } else { 500 };
        let sizes: Vec<usize> = (0..count).map(|i| (i * 7919) % 3000).collect();
        let list = pieces(&sizes, 3);
        let (mut seen, mut last) = (0, 0);
        for chunk in list.cut(64 << 10, 40, 0) {
            assert!(chunk.staged.start >= last && chunk.pieces.len() <= 40);
            assert!(chunk.staged.len() <= 64 << 10);
            last = chunk.staged.end;
            let slice_bytes = 10_000;
            let mut start = chunk.staged.start;
            while start < chunk.staged.end {
                let end = chunk.staged.end.min(start + slice_bytes);
                let parts = list.parts(&chunk, start..end);
                seen += parts.map(|part| part.bytes).sum::<usize>();
                start = end;
            }
        }
        assert_eq!(seen, sizes.iter().sum::<usize>());
    }

    #[test]
    fn only_neighbours_are_merged() {
        let list = pieces(&[100, 50, 7, 4096], 0);
        let chunks = list.cut(1 << 20, 100, 0);
        assert_eq!(chunks.len(), 1);
        assert_eq!(list.runs(&chunks[0]).len(), 1);
        let list = pieces(&[100, 50, 7, 4096], 1);
        let chunks = list.cut(1 << 20, 100, 0);
        assert_eq!(list.runs(&chunks[0]).len(), 4);
    }

    #[test]
    fn staged_and_final_addresses_have_the_same_remainder() {
        let list = pieces(&[33, 1, 15, 16, 17, 100], 5);
        for piece in &list.list {
            let remainder = piece.device.0 as usize % WORD_BYTES;
            assert_eq!(piece.offset % WORD_BYTES, remainder);
        }
    }

    #[test]
    fn chunks_cover_everything_once_and_fit_the_ring() {
        let sizes = (0..2000)
            .map(|i| i * 37)
            .chain((0..400).map(|i| i * 333_337))
            .chain([1 << 30, (1 << 30) + 1, (64 << 20) - 1]);
        for bytes in sizes.step_by(if cfg!(miri) { 100 } else { 1 }) {
            for chunk_bytes in [64 << 10, 1 << 20, 8 << 20] {
                let chunks = chunk_ranges(bytes, chunk_bytes, bytes % 2 == 0);
                let mut at = 0;
                for chunk in &chunks {
                    assert_eq!(chunk.start, at);
                    assert!(!chunk.is_empty() && chunk.len() <= chunk_bytes);
                    assert!(chunk.start.is_multiple_of(GRAIN_BYTES));
                    at = chunk.end;
                }
                assert_eq!(at, bytes);
            }
        }
    }

    #[test]
    fn chunks_ramp_up_and_down() {
        let ranges = chunk_ranges(64 << 20, 8 << 20, false);
        let sizes: Vec<_> = ranges.iter().map(Range::len).collect();
        assert_eq!(
            sizes[..5],
            [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20]
        );
        let last = *sizes.last().unwrap();
        assert!(last <= 1 << 20, "ends with {last} bytes");
    }

    #[test]
    fn slices_are_many_but_not_tiny() {
        for bytes in [1, 4096, 512 << 10, 3 << 20, 8 << 20] {
            let (slice, count) = (slice_bytes(bytes), slices(bytes));
            assert!(slice * count >= bytes && slice * (count - 1) < bytes);
            assert!(count <= SLICES && slice.is_multiple_of(GRAIN_BYTES));
        }
    }
}
