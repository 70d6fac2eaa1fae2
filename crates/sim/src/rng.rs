//! Random numbers that decide schedules and faults.

use pinlane_model::SplitMix64;

/// A generator for one purpose: the same seed gives the same run on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(SplitMix64);

impl Rng {
    /// Creates a generator; `purpose` separates generators of the same seed.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut random = SplitMix64::new(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        random.next_u64();
        Self(random)
    }

    /// A number below `limit`, or 0 if `limit` is 0. Scaled, not a remainder: seeds in use depend on it.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
