//! Random numbers that depend only on a seed.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SplitMix64 generator.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Number `index` of the sequence of a seed.
    pub(crate) fn nth(seed: u64, index: u64) -> u64 {
        Self(seed.wrapping_add(index.wrapping_mul(STEP))).next()
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0. The modulo bias is negligible here.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_that_depends_on_the_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(3), shuffled(3));
        assert_ne!(shuffled(3), shuffled(4));
        let mut items = shuffled(3);
        assert_ne!(items, (0..100).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn any_number_of_the_sequence_can_be_computed_alone() {
        let mut random = SplitMix64::new(7);
        for index in 0..100 {
            assert_eq!(SplitMix64::nth(7, index), random.next());
        }
    }
}
