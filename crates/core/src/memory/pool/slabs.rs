//! The memory that blocks are cut from, and operations that lock the whole pool.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

use super::PoolStats;
use super::shard::{self, BlockRef, LockedShard, SHARDS, SlabTally};
use crate::memory::pinning::Block;

/// All slabs. Changes only when memory is pinned or freed, or when usage reaches a new maximum.
#[derive(Default)]
pub(super) struct SlabTable {
    /// Keyed by block size.
    slabs: BTreeMap<usize, Slabs>,
    pub(super) high_water_bytes: u64,
    pub(super) misses: u64,
}

/// The slabs of one block size.
#[derive(Default)]
struct Slabs {
    /// Indexed by slab number; the number of a freed slab is reused.
    numbered: Vec<Option<Slab>>,
    unused: Vec<u32>,
}

/// Page-locked memory cut into blocks.
pub(super) struct Slab {
    pub(super) memory: Block,
    pub(super) blocks: u32,
}

impl Slab {
    /// Total size of its blocks.
    pub(super) fn bytes(&self, block_bytes: usize) -> u64 {
        block_bytes as u64 * u64::from(self.blocks)
    }
}

impl SlabTable {
    /// Adds a slab and returns its number among those of its size.
    pub(super) fn add(&mut self, block_bytes: usize, slab: Slab) -> u32 {
        let slabs = self.slabs.entry(block_bytes).or_default();
        if let Some(number) = slabs.unused.pop() {
            slabs.numbered[number as usize] = Some(slab);
            return number;
        }
        slabs.numbered.push(Some(slab));
        (slabs.numbered.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, block_bytes: usize, number: u32) -> Slab {
        let slabs = self.slabs.get_mut(&block_bytes);
        let slabs = slabs.expect("the size has a slab");
        slabs.unused.push(number);
        let slab = slabs.numbered[number as usize].take();
        if slabs.unused.len() == slabs.numbered.len() {
            self.slabs.remove(&block_bytes);
        }
        slab.expect("a slab is removed once")
    }

    pub(super) fn slab(&self, block_bytes: usize, number: u32) -> Option<&Slab> {
        let slabs = self.slabs.get(&block_bytes)?;
        slabs.numbered.get(number as usize)?.as_ref()
    }

    /// Whether there are blocks of this size, idle or in use.
    pub(super) fn has_size(&self, block_bytes: usize) -> bool {
        self.slabs.contains_key(&block_bytes)
    }

    /// The block sizes in this range, smallest first.
    pub(super) fn sizes(&self, range: RangeInclusive<usize>) -> Vec<usize> {
        self.slabs.range(range).map(|(&bytes, _)| bytes).collect()
    }

    /// All slabs, with their block size and number.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (usize, u32, &Slab)> {
        self.slabs.iter().flat_map(|(&block_bytes, slabs)| {
            let numbered = (0u32..).zip(&slabs.numbered);
            numbered.filter_map(move |(number, slab)| Some((block_bytes, number, slab.as_ref()?)))
        })
    }
}

/// The slabs and all shards, locked. Never calls the driver: memory to be freed is handed to the caller.
pub(super) struct LockedPool<'a> {
    pub(super) slabs: MutexGuard<'a, SlabTable>,
    pub(super) shards: [LockedShard<'a>; SHARDS],
}

/// A slab whose blocks are all idle.
pub(super) struct IdleSlab {
    block_bytes: usize,
    number: u32,
    /// Total size of its blocks.
    pub(super) bytes: u64,
    /// When its last block was returned.
    pub(super) since_ns: u64,
}

impl LockedPool<'_> {
    /// Takes an idle block from any shard.
    pub(super) fn take(&mut self, block_bytes: usize) -> Option<BlockRef> {
        let own = shard::own();
        let piece =
            (0..SHARDS).find_map(|at| self.shards[(own + at) % SHARDS].take_idle(block_bytes))?;
        self.count_out(block_bytes);
        Some(piece)
    }

    /// Takes the smallest idle block of these sizes, and returns its size.
    pub(super) fn take_of(&mut self, sizes: RangeInclusive<usize>) -> Option<(BlockRef, usize)> {
        let sizes = self.slabs.sizes(sizes);
        let mut sizes = sizes.into_iter();
        sizes.find_map(|block_bytes| Some((self.take(block_bytes)?, block_bytes)))
    }

    /// Cuts `memory` into `blocks`. The first is taken, the others are idle.
    pub(super) fn add(&mut self, block_bytes: usize, memory: Block, blocks: u32) -> BlockRef {
        let base = memory.start();
        let slab = self.slabs.add(block_bytes, Slab { memory, blocks });
        let piece = |at: u32| BlockRef {
            // SAFETY: the memory holds that many blocks.
            start: unsafe { base.add(at as usize * block_bytes) },
            slab,
        };
        self.slabs.misses += 1;
        self.shards[shard::own()].stock_up(block_bytes, (1..blocks).rev().map(piece));
        self.count_out(block_bytes);
        piece(0)
    }

    /// Counts one more block as in use. Spare bytes of the shards cover it first; the rest raises the
    /// high-water mark.
    fn count_out(&mut self, block_bytes: usize) {
        let mut short_bytes = block_bytes as u64;
        short_bytes -= self.shards[shard::own()].take_spare(short_bytes);
        // Take from the shard with the most to spare.
        let fullest = |shards: &mut [LockedShard<'_>; SHARDS], bytes| {
            let fullest = shards.iter_mut().max_by_key(|shard| shard.spare_bytes());
            fullest.map_or(0, |shard| shard.take_spare(bytes))
        };
        while short_bytes > 0 {
            match fullest(&mut self.shards, short_bytes) {
                0 => break,
                bytes => short_bytes -= bytes,
            }
        }
        self.slabs.high_water_bytes += short_bytes;
    }

    pub(super) fn cached_bytes(&self) -> u64 {
        self.shards.iter().map(LockedShard::cached_bytes).sum()
    }

    /// Whether all blocks of the slab are idle.
    pub(super) fn is_idle(&self, block_bytes: usize, number: u32) -> bool {
        let slab = self.slabs.slab(block_bytes, number);
        slab.is_some_and(|slab| self.tally(block_bytes, number).idle == slab.blocks)
    }

    /// Sums the tallies of all shards.
    fn tally(&self, block_bytes: usize, number: u32) -> SlabTally {
        let free_blocks = self
            .shards
            .iter()
            .filter_map(|shard| shard.free_blocks(block_bytes));
        let tallies = free_blocks.map(|free_blocks| free_blocks.tally(number));
        tallies.fold(SlabTally::default(), |sum, tally| SlabTally {
            idle: sum.idle + tally.idle,
            back_ns: sum.back_ns.max(tally.back_ns),
        })
    }

    /// Removes at least `bytes` of idle memory if that much exists, longest idle first.
    #[must_use = "it is freed by dropping it, when nothing is locked any more"]
    pub(super) fn remove_idle(&mut self, bytes: u64) -> Vec<Block> {
        let mut removed_bytes = 0;
        self.remove_idle_if(|slab| {
            let wanted = removed_bytes < bytes;
            removed_bytes += if wanted { slab.bytes } else { 0 };
            wanted
        })
    }

    /// Removes the idle slabs that the callback selects. It sees the longest idle first.
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
            removed.push(self.slabs.remove(slab.block_bytes, slab.number).memory);
        }
        let mut sizes: Vec<_> = idle.iter().map(|slab| slab.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for block_bytes in sizes {
            for shard in &mut self.shards {
                if self.slabs.has_size(block_bytes) {
                    let gone = |number| self.slabs.slab(block_bytes, number).is_none();
                    shard.clear(block_bytes, gone);
                } else {
                    shard.remove_size(block_bytes);
                }
            }
        }
        removed
    }

    fn idle_slabs(&self) -> Vec<IdleSlab> {
        let slabs = self.slabs.slabs();
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
        let spare_bytes: u64 = self.shards.iter().map(LockedShard::spare_bytes).sum();
        PoolStats {
            in_use_bytes: self.slabs.high_water_bytes - spare_bytes,
            cached_bytes: self.cached_bytes(),
            high_water_bytes: self.slabs.high_water_bytes,
            hits: self.shards.iter().map(LockedShard::hits).sum(),
            misses: self.slabs.misses,
            pinned_bytes: {
                let slabs = self.slabs.slabs();
                slabs.map(|(_, _, slab)| slab.memory.locked_bytes()).sum()
            },
        }
    }
}
