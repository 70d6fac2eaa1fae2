//! The blocks of one size.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::pinning::Block;

/// Blocks of one size, idle and out. Its lock is held for a few instructions only, never while
/// the driver is called.
#[derive(Default)]
// Neighbours must not slow each other down by sharing a cache line.
#[repr(align(128))]
pub(super) struct Shelf {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one given back last is taken first: it is the warmest.
    idle: Vec<Piece>,
    /// By number; a number is used again when its slab has gone.
    slabs: Vec<Option<Slab>>,
    unused: Vec<u32>,
    hits: u64,
    misses: u64,
}

/// A block of the pool's: where it is, and the slab that it was cut from.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: NonNull<u8>,
    pub(super) slab: u32,
}

// SAFETY: an address in memory that the pool owns; whoever holds it is its only user.
unsafe impl Send for Piece {}

/// Page-locked memory, cut into blocks.
struct Slab {
    memory: Block,
    blocks: u32,
    idle: u32,
    /// When its last block came back, where all are idle.
    idle_since_ns: u64,
}

/// A slab of which all blocks are idle.
#[derive(Clone, Copy)]
pub(super) struct IdleSlab {
    pub(super) slab: u32,
    pub(super) since_ns: u64,
}

/// What a shelf adds up to.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) idle_blocks: u64,
    pub(super) pinned_bytes: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl Shelf {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle block, if there is one.
    pub(super) fn take(&self) -> Option<Piece> {
        let mut state = self.state();
        let piece = state.idle.pop()?;
        state.slab(piece.slab).idle -= 1;
        state.hits += 1;
        Some(piece)
    }

    /// Cut `memory` into `blocks` of `block_bytes`; the first is taken, the others are idle.
    pub(super) fn add(&self, memory: Block, blocks: u32, block_bytes: usize) -> Piece {
        let base = memory.start();
        let mut state = self.state();
        let slab = Slab {
            memory,
            blocks,
            idle: blocks - 1,
            idle_since_ns: 0,
        };
        let number = match state.unused.pop() {
            Some(number) => {
                state.slabs[number as usize] = Some(slab);
                number
            }
            None => {
                state.slabs.push(Some(slab));
                (state.slabs.len() - 1) as u32
            }
        };
        state.misses += 1;
        let piece = |at: u32| Piece {
            // SAFETY: the memory holds that many blocks.
            start: unsafe { base.add(at as usize * block_bytes) },
            slab: number,
        };
        // Room for all blocks, the taken ones too: giving one back allocates nothing.
        let in_all: usize = state
            .slabs
            .iter()
            .flatten()
            .map(|s| s.blocks as usize)
            .sum();
        let more = in_all.saturating_sub(state.idle.len());
        state.idle.reserve(more);
        state.idle.extend((1..blocks).rev().map(piece));
        piece(0)
    }

    /// Whether all blocks of its slab are idle now.
    pub(super) fn give_back(&self, piece: Piece, now_ns: impl FnOnce() -> u64) -> bool {
        let mut state = self.state();
        state.idle.push(piece);
        let slab = state.slab(piece.slab);
        slab.idle += 1;
        let all = slab.idle == slab.blocks;
        if all {
            slab.idle_since_ns = now_ns();
        }
        all
    }

    /// All slabs that could go.
    pub(super) fn idle_slabs(&self) -> Vec<IdleSlab> {
        let state = self.state();
        let numbered = (0u32..).zip(&state.slabs);
        numbered
            .filter_map(|(number, slab)| {
                let slab = slab.as_ref()?;
                (slab.idle == slab.blocks).then_some(IdleSlab {
                    slab: number,
                    since_ns: slab.idle_since_ns,
                })
            })
            .collect()
    }

    /// The memory of an idle slab, to be freed by the caller, and its number of blocks. None where
    /// it is in use again, or was since.
    pub(super) fn remove(&self, idle: IdleSlab) -> Option<(Block, u32)> {
        let mut state = self.state();
        let slot = state.slabs.get_mut(idle.slab as usize)?;
        let unchanged =
            |slab: &mut Slab| slab.idle == slab.blocks && slab.idle_since_ns == idle.since_ns;
        let slab = slot.take_if(unchanged)?;
        state.unused.push(idle.slab);
        state.idle.retain(|piece| piece.slab != idle.slab);
        Some((slab.memory, slab.blocks))
    }

    pub(super) fn sums(&self) -> Sums {
        let state = self.state();
        let memory = |slab: &Slab| slab.memory.locked_bytes();
        Sums {
            idle_blocks: state.idle.len() as u64,
            pinned_bytes: state.slabs.iter().flatten().map(memory).sum(),
            hits: state.hits,
            misses: state.misses,
        }
    }
}

impl State {
    fn slab(&mut self, number: u32) -> &mut Slab {
        self.slabs[number as usize]
            .as_mut()
            .expect("a slab stays while a block of it is out")
    }
}
