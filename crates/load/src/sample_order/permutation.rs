//! Shuffles that take no memory.

use std::array;

use pinlane_model::SplitMix64;

/// A permutation of `0..count`, computed position by position.
///
/// A Feistel network permutes all numbers with as many bits as `count - 1`. Those past the end, less than
/// half, go through it again until they fall inside ("cycle walking"), which is a permutation, too.
///
/// It must never change: saved epochs depend on it. A golden test pins some of its values.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    /// Bits of the low half; the high half has as many or one more.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    rounds: usize,
    keys: [u64; ROUNDS_MAX],
}

/// Rounds of a network of at least [`WIDE_BITS`] bits.
const ROUNDS: usize = 12;

/// Rounds of a narrower network, which mixes more slowly: with 12 rounds, some of the 120 orders of five
/// samples are measurably more frequent than others; with 24, none are.
const ROUNDS_MAX: usize = 32;

/// The fewest bits of a wide network.
const WIDE_BITS: u32 = 12;

impl Permutation {
    pub(super) fn new(count: u64, seed: u64, epoch: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        // `mix` is a permutation, so two epochs of one seed never collide.
        let start = SplitMix64::mix(SplitMix64::mix(seed.wrapping_add(SplitMix64::STEP)) ^ epoch);
        let mut random = SplitMix64::new(start);
        Self {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            rounds: if bits < WIDE_BITS { ROUNDS_MAX } else { ROUNDS },
            keys: array::from_fn(|_| random.next_u64()),
        }
    }

    /// The number at a position below the count.
    pub(super) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count);
        let mut number = position;
        loop {
            number = self.network(number);
            if number < self.count {
                return number;
            }
        }
    }

    /// Each round changes one half by a function of the other, so it can be undone.
    fn network(&self, number: u64) -> u64 {
        let mut low = number & self.low_mask;
        let mut high = number >> self.low_bits;
        for pair in self.keys[..self.rounds].chunks_exact(2) {
            high ^= SplitMix64::mix(low ^ pair[0]) & self.high_mask;
            low ^= SplitMix64::mix(high ^ pair[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}
