//! The pool with everybody else kept out for a moment: what one desk alone cannot do.

use std::ops::RangeInclusive;
use std::sync::MutexGuard;

use super::PoolStats;
use super::books::{Books, Slab};
use super::desk::{self, DESKS, OpenDesk};
use super::shelf::{Piece, Tally};
use crate::memory::pinning::Block;

/// The books and all desks, locked. The driver is not called meanwhile: memory that is to be freed
/// is handed to the caller.
pub(super) struct Whole<'a> {
    pub(super) books: MutexGuard<'a, Books>,
    pub(super) desks: [OpenDesk<'a>; DESKS],
}

/// A slab of which all blocks are idle.
pub(super) struct IdleSlab {
    block_bytes: usize,
    number: u32,
    /// Of its blocks.
    pub(super) bytes: u64,
    /// When its last block came back.
    pub(super) since_ns: u64,
}

impl Whole<'_> {
    /// An idle block, if there is one anywhere.
    pub(super) fn take(&mut self, block_bytes: usize) -> Option<Piece> {
        let own = desk::own();
        let piece =
            (0..DESKS).find_map(|at| self.desks[(own + at) % DESKS].take_idle(block_bytes))?;
        self.count_out(block_bytes);
        Some(piece)
    }

    /// The smallest idle block of these sizes, and its size.
    pub(super) fn take_of(&mut self, sizes: RangeInclusive<usize>) -> Option<(Piece, usize)> {
        let sizes = self.books.sizes(sizes);
        let mut sizes = sizes.into_iter();
        sizes.find_map(|block_bytes| Some((self.take(block_bytes)?, block_bytes)))
    }

    /// Cut `memory` into `blocks`; the first is taken, the others are idle.
    pub(super) fn add(&mut self, block_bytes: usize, memory: Block, blocks: u32) -> Piece {
        let base = memory.start();
        let slab = self.books.add(block_bytes, Slab { memory, blocks });
        let piece = |at: u32| Piece {
            // SAFETY: the memory holds that many blocks.
            start: unsafe { base.add(at as usize * block_bytes) },
            slab,
        };
        self.books.misses += 1;
        self.desks[desk::own()].stock_up(block_bytes, (1..blocks).rev().map(piece));
        self.count_out(block_bytes);
        piece(0)
    }

    /// One more block is out. Whatever was not out before raises the high-water mark.
    fn count_out(&mut self, block_bytes: usize) {
        let mut short_bytes = block_bytes as u64;
        short_bytes -= self.desks[desk::own()].take_spare(short_bytes);
        // From where it is missed least.
        let fullest = |desks: &mut [OpenDesk<'_>; DESKS], bytes| {
            let fullest = desks.iter_mut().max_by_key(|desk| desk.spare_bytes());
            fullest.map_or(0, |desk| desk.take_spare(bytes))
        };
        while short_bytes > 0 {
            match fullest(&mut self.desks, short_bytes) {
                0 => break,
                bytes => short_bytes -= bytes,
            }
        }
        self.books.high_water_bytes += short_bytes;
    }

    pub(super) fn cached_bytes(&self) -> u64 {
        self.desks.iter().map(OpenDesk::cached_bytes).sum()
    }

    /// Whether all its blocks are idle.
    pub(super) fn is_idle(&self, block_bytes: usize, number: u32) -> bool {
        let slab = self.books.slab(block_bytes, number);
        slab.is_some_and(|slab| self.tally(block_bytes, number).idle == slab.blocks)
    }

    /// Of all desks.
    fn tally(&self, block_bytes: usize, number: u32) -> Tally {
        let shelves = self.desks.iter().filter_map(|desk| desk.shelf(block_bytes));
        let tallies = shelves.map(|shelf| shelf.tally(number));
        tallies.fold(Tally::default(), |sum, tally| Tally {
            idle: sum.idle + tally.idle,
            back_ns: sum.back_ns.max(tally.back_ns),
        })
    }

    /// Take out idle memory, at least `bytes` if there are as many, longest idle first.
    #[must_use = "it is freed by dropping it, when nothing is locked any more"]
    pub(super) fn remove_idle(&mut self, bytes: u64) -> Vec<Block> {
        let mut removed_bytes = 0;
        self.remove_idle_if(|slab| {
            let wanted = removed_bytes < bytes;
            removed_bytes += if wanted { slab.bytes } else { 0 };
            wanted
        })
    }

    /// Take out the idle slabs that are wanted; the longest idle ones are asked for first.
    #[must_use = "it is freed by dropping it, when nothing is locked any more"]
    pub(super) fn remove_idle_if(
        &mut self,
        mut wanted: impl FnMut(&IdleSlab) -> bool,
    ) -> Vec<Block> {
        let mut idle = self.idle_slabs();
        idle.sort_by_key(|slab| slab.since_ns);
        idle.retain(|slab| wanted(slab));
        let mut removed = Vec::with_capacity(idle.len());
        for slab in &idle {
            removed.push(self.books.remove(slab.block_bytes, slab.number).memory);
        }
        let mut sizes: Vec<_> = idle.iter().map(|slab| slab.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for block_bytes in sizes {
            for desk in &mut self.desks {
                if self.books.has_size(block_bytes) {
                    let gone = |number| self.books.slab(block_bytes, number).is_none();
                    desk.clear(block_bytes, gone);
                } else {
                    desk.remove_size(block_bytes);
                }
            }
        }
        removed
    }

    fn idle_slabs(&self) -> Vec<IdleSlab> {
        let slabs = self.books.slabs();
        slabs
            .filter_map(|(block_bytes, number, slab)| {
                let tally = self.tally(block_bytes, number);
                (tally.idle == slab.blocks).then_some(IdleSlab {
                    block_bytes,
                    number,
                    bytes: slab.bytes(block_bytes),
                    since_ns: tally.back_ns,
                })
            })
            .collect()
    }

    pub(super) fn stats(&self) -> PoolStats {
        let spare_bytes: u64 = self.desks.iter().map(OpenDesk::spare_bytes).sum();
        PoolStats {
            in_use_bytes: self.books.high_water_bytes - spare_bytes,
            cached_bytes: self.cached_bytes(),
            high_water_bytes: self.books.high_water_bytes,
            hits: self.desks.iter().map(OpenDesk::hits).sum(),
            misses: self.books.misses,
            pinned_bytes: {
                let slabs = self.books.slabs();
                slabs.map(|(_, _, slab)| slab.memory.locked_bytes()).sum()
            },
        }
    }
}
