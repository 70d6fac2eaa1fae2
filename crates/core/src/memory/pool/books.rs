//! The memory that blocks were cut from, and what is known of the pool as a whole.

use super::class;
use crate::memory::pinning::Block;

/// Changes only when memory is pinned or freed, or when more is out than ever was.
pub(super) struct Books {
    /// By size.
    slabs: Box<[Slabs]>,
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
    /// Of all its blocks, which are of size number `class`.
    pub(super) fn bytes(&self, class: usize) -> u64 {
        class::block_bytes(class) as u64 * u64::from(self.blocks)
    }
}

impl Default for Books {
    fn default() -> Self {
        Self {
            slabs: (0..class::COUNT).map(|_| Slabs::default()).collect(),
            high_water_bytes: 0,
            misses: 0,
        }
    }
}

impl Books {
    /// The number of the slab, among those of its size.
    pub(super) fn add(&mut self, class: usize, slab: Slab) -> u32 {
        let slabs = &mut self.slabs[class];
        if let Some(number) = slabs.unused.pop() {
            slabs.numbered[number as usize] = Some(slab);
            return number;
        }
        slabs.numbered.push(Some(slab));
        (slabs.numbered.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, class: usize, number: u32) -> Slab {
        let slabs = &mut self.slabs[class];
        slabs.unused.push(number);
        let slab = slabs.numbered[number as usize].take();
        slab.expect("a slab is removed once")
    }

    pub(super) fn slab(&self, class: usize, number: u32) -> Option<&Slab> {
        self.slabs[class].numbered.get(number as usize)?.as_ref()
    }

    /// All of them, with their size and number.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (usize, u32, &Slab)> {
        self.slabs.iter().enumerate().flat_map(|(class, slabs)| {
            let numbered = (0u32..).zip(&slabs.numbered);
            numbered.filter_map(move |(number, slab)| Some((class, number, slab.as_ref()?)))
        })
    }
}
