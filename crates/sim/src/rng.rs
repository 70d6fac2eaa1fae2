//! Deterministic random numbers: the same seed gives the same run on every machine.

/// SplitMix64: one multiplication chain a number, good enough to choose schedules with.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// Numbers from a seed; `purpose` keeps streams of the same seed apart.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = Self {
            state: seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95),
        };
        rng.next();
        rng
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`; 0 when there is none.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Spreads every bit of `value` over the whole word.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
