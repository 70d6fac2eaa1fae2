//! The memory that blocks are cut from, and operations that lock the whole pool.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

use super::PoolStats;
use super::shard::{self, BlockRef, FreeBlocks, LockedShard, SHARDS, SlabTally};
use crate::memory::pinning::Block;

/// All slabs. Changes only when memory is pinned or freed, or when usage reaches a new maximum.
#[derive(Default)]
pub(super) struct SlabTable {
    slabs: BTreeMap<usize, NumberedSlabs>,
    high_water_bytes: u64,
    misses: u64,
}

/// Slabs with blocks of one size.
#[derive(Default)]
struct NumberedSlabs {
    /// By number.
    slabs: Vec<Option<Slab>>,
    /// Numbers of freed slabs, for reuse.
    unused: Vec<u32>,
}

/// Page-locked memory cut into blocks.
struct Slab {
    memory: Block,
    blocks: u32,
}

impl SlabTable {
    /// Adds a slab and returns its number among those of its size.
    fn add(&mut self, block_bytes: usize, slab: Slab) -> u32 {
        let NumberedSlabs { slabs, unused } = self.slabs.entry(block_bytes).or_default();
        let number = unused.pop().unwrap_or_else(|| {
            slabs.push(None);
            slabs.len() as u32 - 1
        });
        slabs[number as usize] = Some(slab);
        number
    }

    fn remove(&mut self, block_bytes: usize, number: u32) -> Slab {
        let numbered = self.slabs.get_mut(&block_bytes);
        let NumberedSlabs { slabs, unused } = numbered.expect("the size has a slab");
        let slab = slabs[number as usize].take();
        unused.push(number);
        if unused.len() == slabs.len() {
            self.slabs.remove(&block_bytes);
        }
        slab.expect("a slab is removed once")
    }

    fn slab(&self, block_bytes: usize, number: u32) -> Option<&Slab> {
        let numbered = self.slabs.get(&block_bytes)?;
        numbered.slabs.get(number as usize)?.as_ref()
    }

    /// All slabs, with their block size and number.
    fn slabs(&self) -> impl Iterator<Item = (usize, u32, &Slab)> {
        self.slabs.iter().flat_map(|(&block_bytes, numbered)| {
            let numbered = (0u32..).zip(&numbered.slabs);
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
    /// What it counts in the budget.
    pub(super) locked_bytes: u64,
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
        let sizes: Vec<usize> = self
            .slabs
            .slabs
            .range(sizes)
            .map(|(&bytes, _)| bytes)
            .collect();
        sizes
            .into_iter()
            .find_map(|block_bytes| Some((self.take(block_bytes)?, block_bytes)))
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

    /// Counts a block as in use. What the spare bytes do not cover raises the high-water mark.
    fn count_out(&mut self, block_bytes: usize) {
        let mut short_bytes = block_bytes as u64;
        short_bytes -= self.shards[shard::own()].take_spare(short_bytes);
        while short_bytes > 0 {
            let shards = self.shards.iter_mut();
            let fullest = shards.max_by_key(|shard| shard.stock.spare_bytes);
            match fullest.map_or(0, |shard| shard.take_spare(short_bytes)) {
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
        let mut sum = SlabTally::default();
        for shard in &self.shards {
            let list = shard.free_blocks(block_bytes);
            sum.add(list.map_or_else(SlabTally::default, |list| list.tally(number)));
        }
        sum
    }

    /// Removes at least `bytes` of idle memory if that much exists, longest idle first.
    #[must_use = "it is freed by dropping it, when nothing is locked any more"]
    pub(super) fn remove_idle(&mut self, bytes: u64) -> Vec<Block> {
        self.remove_idle_if(longest_idle(bytes, |slab| slab.bytes))
    }

    /// Like [`remove_idle`](Self::remove_idle), for `bytes` of the budget.
    #[must_use = "it is freed by dropping it, when nothing is locked any more"]
    pub(super) fn remove_locked(&mut self, bytes: u64) -> Vec<Block> {
        self.remove_idle_if(longest_idle(bytes, |slab| slab.locked_bytes))
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
        let remove = |slab: &IdleSlab| self.slabs.remove(slab.block_bytes, slab.number).memory;
        let removed = idle.iter().map(remove).collect();
        let sizes: BTreeSet<usize> = idle.iter().map(|slab| slab.block_bytes).collect();
        for block_bytes in sizes {
            for shard in &mut self.shards {
                if self.slabs.slabs.contains_key(&block_bytes) {
                    let gone = |number| self.slabs.slab(block_bytes, number).is_none();
                    shard.clear(block_bytes, gone);
                } else {
                    shard.remove_size(block_bytes);
                }
            }
        }
        removed
    }

    /// There may be thousands, so each list of each shard is read once, from front to back.
    pub(super) fn idle_slabs(&self) -> Vec<IdleSlab> {
        let mut idle = Vec::new();
        for (&block_bytes, numbered) in &self.slabs.slabs {
            let mut tallies = vec![SlabTally::default(); numbered.slabs.len()];
            for shard in &self.shards {
                let list = shard.free_blocks(block_bytes);
                for (sum, tally) in tallies
                    .iter_mut()
                    .zip(list.map_or(&[][..], FreeBlocks::tallies))
                {
                    sum.add(*tally);
                }
            }
            let slabs = (0u32..).zip(&numbered.slabs).zip(tallies);
            idle.extend(slabs.filter_map(|((number, slab), tally)| {
                let slab = slab.as_ref().filter(|slab| tally.idle == slab.blocks)?;
                Some(IdleSlab {
                    block_bytes,
                    number,
                    bytes: block_bytes as u64 * u64::from(slab.blocks),
                    locked_bytes: slab.memory.locked_bytes(),
                    since_ns: tally.back_ns,
                })
            }));
        }
        idle
    }

    pub(super) fn stats(&self) -> PoolStats {
        let spare_bytes: u64 = self
            .shards
            .iter()
            .map(|shard| shard.stock.spare_bytes)
            .sum();
        let locked_bytes = |(_, _, slab): (usize, u32, &Slab)| slab.memory.locked_bytes();
        PoolStats {
            in_use_bytes: self.slabs.high_water_bytes - spare_bytes,
            cached_bytes: self.cached_bytes(),
            high_water_bytes: self.slabs.high_water_bytes,
            hits: self.shards.iter().map(|shard| shard.stock.hits).sum(),
            misses: self.slabs.misses,
            pinned_bytes: self.slabs.slabs().map(locked_bytes).sum(),
        }
    }
}

/// Selects slabs until they hold `bytes`.
fn longest_idle(bytes: u64, size: fn(&IdleSlab) -> u64) -> impl FnMut(&IdleSlab) -> bool {
    let mut selected_bytes = 0;
    move |slab| {
        let wanted = selected_bytes < bytes;
        selected_bytes += if wanted { size(slab) } else { 0 };
        wanted
    }
}
