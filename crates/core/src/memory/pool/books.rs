//! The memory that blocks were cut from, and what is known of the pool as a whole.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::memory::pinning::Block;

/// Changes only when memory is pinned or freed, or when more is out than ever was.
#[derive(Default)]
pub(super) struct Books {
    /// By the size of their blocks.
    slabs: BTreeMap<usize, Slabs>,
    pub(super) high_water_bytes: u64,
    pub(super) misses: u64,
}

/// The slabs of one size.
#[derive(Default)]
struct Slabs {
    /// By number; a number is used again when its slab has gone.
    numbered: Vec<Option<Slab>>,
    unused: Vec<u32>,
}

/// Page-locked memory, cut into blocks.
pub(super) struct Slab {
    pub(super) memory: Block,
    pub(super) blocks: u32,
}

impl Slab {
    /// Of all its blocks.
    pub(super) fn bytes(&self, block_bytes: usize) -> u64 {
        block_bytes as u64 * u64::from(self.blocks)
    }
}

impl Books {
    /// The number of the slab, among those of its size.
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

    /// The sizes of blocks in this range, smallest first.
    pub(super) fn sizes(&self, range: RangeInclusive<usize>) -> Vec<usize> {
        self.slabs.range(range).map(|(&bytes, _)| bytes).collect()
    }

    /// All of them, with their size and number.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (usize, u32, &Slab)> {
        self.slabs.iter().flat_map(|(&block_bytes, slabs)| {
            let numbered = (0u32..).zip(&slabs.numbered);
            numbered.filter_map(move |(number, slab)| Some((block_bytes, number, slab.as_ref()?)))
        })
    }
}
