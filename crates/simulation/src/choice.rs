//! Choices of a program, decided by its seed alone.

/// A stream of choices (SplitMix64).
pub(crate) struct Choice(u64);

impl Choice {
    pub(crate) fn new(seed: u64) -> Self {
        // Apart from the simulator's own stream of the same seed.
        Self(seed ^ 0x5eed_0fa9_0914_0000)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A range of at least one and at most `most` elements inside of `len`.
    pub(crate) fn range(&mut self, len: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        let end = start + 1 + self.below(most.min(len - start));
        start..end
    }
}
