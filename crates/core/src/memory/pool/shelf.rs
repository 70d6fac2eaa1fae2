//! The blocks of one size that lie at one desk.

use std::ptr::NonNull;

/// A block of the pool's: where it is, and the number of the slab that it was cut from.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: NonNull<u8>,
    pub(super) slab: u32,
}

// SAFETY: an address in memory that the pool owns; whoever holds it is its only user.
unsafe impl Send for Piece {}

/// Idle blocks of one size. Blocks of a slab may lie on the shelves of several desks.
// The desks' shelves must not slow each other down by sharing a cache line.
#[repr(align(64))]
pub(super) struct Shelf {
    pub(super) block_bytes: usize,
    /// The one given back last is taken first: it is the warmest.
    idle: Vec<Piece>,
    /// By the number of the slab; those beyond the end are as new.
    tallies: Vec<Tally>,
}

/// What one shelf knows of one slab.
#[derive(Clone, Copy, Default)]
#[repr(align(64))] // as for the shelf
pub(super) struct Tally {
    /// Blocks of it that lie here.
    pub(super) idle: u32,
    /// When one came back to here last, whether it still lies here or not.
    pub(super) back_ns: u64,
}

/// Room for as many blocks is made at once: as few as one would share a cache line with others.
const ROOM_MIN: usize = 16;

impl Shelf {
    pub(super) fn new(block_bytes: usize) -> Self {
        Self {
            block_bytes,
            idle: Vec::new(),
            tallies: Vec::new(),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        let piece = self.idle.pop()?;
        self.tallies[piece.slab as usize].idle -= 1;
        Some(piece)
    }

    pub(super) fn push(&mut self, piece: Piece, now_ns: u64) {
        self.put(piece);
        // Threads look at the clock before they are here, so it may be an older time that is new.
        let tally = &mut self.tallies[piece.slab as usize];
        tally.back_ns = tally.back_ns.max(now_ns);
    }

    /// The blocks of a new slab, the one to be taken first last.
    pub(super) fn stock_up(&mut self, pieces: impl ExactSizeIterator<Item = Piece>) {
        self.idle.reserve(pieces.len());
        pieces.for_each(|piece| self.put(piece));
    }

    fn put(&mut self, piece: Piece) {
        if self.idle.capacity() == 0 {
            self.idle.reserve(ROOM_MIN);
        }
        self.idle.push(piece);
        let slab = piece.slab as usize;
        if slab >= self.tallies.len() {
            self.tallies.resize(slab + 1, Tally::default());
        }
        self.tallies[slab].idle += 1;
    }

    pub(super) fn tally(&self, slab: u32) -> Tally {
        let known = self.tallies.get(slab as usize);
        known.copied().unwrap_or_default()
    }

    /// Forget the blocks of all slabs that are gone. How many lay here.
    pub(super) fn clear(&mut self, gone: impl Fn(u32) -> bool) -> usize {
        let before = self.idle.len();
        self.idle.retain(|piece| !gone(piece.slab));
        for (slab, tally) in (0u32..).zip(&mut self.tallies) {
            if gone(slab) {
                *tally = Tally::default();
            }
        }
        before - self.idle.len()
    }
}
