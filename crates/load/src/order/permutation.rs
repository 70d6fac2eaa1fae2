//! Shuffled orders that take no memory.

/// An order of `0..count` that is computed place by place.
///
/// A Feistel network permutes all numbers of as many bits as `count - 1` has. Numbers past the end
/// are sent through again until they fall inside ("cycle walking"): since the network is a
/// permutation, so is the result. Less than half of all numbers are past the end, so that this
/// takes two turns at most, on average.
///
/// The same for ever: states of half-done epochs rest on it. A test keeps some of its numbers.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    /// Bits of the low part; the high part has as many or one more.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    rounds: usize,
    keys: [u64; ROUNDS_MAX],
}

/// Rounds of a network that has at least [`WIDE_BITS`] bits.
const ROUNDS: usize = 12;

/// Rounds of a narrow one, whose parts know little of each other: with 12, some of the 120 orders
/// of five samples are more frequent than others, measurably; with 24, none of them are.
const ROUNDS_MAX: usize = 32;

/// Bits from which on a network is wide.
const WIDE_BITS: u32 = 12;

impl Permutation {
    pub(super) fn new(count: u64, seed: u64, epoch: u64) -> Self {
        let bits = match count {
            0 | 1 => 0,
            _ => u64::BITS - (count - 1).leading_zeros(),
        };
        let low_bits = bits / 2;
        // For one seed, different epochs cannot meet: `mix` is a permutation.
        let start = mix(mix(seed.wrapping_add(STEP)) ^ epoch);
        let mut keys = [0; ROUNDS_MAX];
        let mut state = start;
        for key in &mut keys {
            state = state.wrapping_add(STEP);
            *key = mix(state);
        }
        Self {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            rounds: match bits < WIDE_BITS {
                true => ROUNDS_MAX,
                false => ROUNDS,
            },
            keys,
        }
    }

    /// Which number is at this place, which is less than the count.
    pub(super) fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = place;
        loop {
            number = self.network(number);
            if number < self.count {
                return number;
            }
        }
    }

    /// Each round changes one part by something that depends on the other, and so can be undone.
    fn network(&self, number: u64) -> u64 {
        let mut low = number & self.low_mask;
        let mut high = number >> self.low_bits;
        for pair in self.keys[..self.rounds].chunks_exact(2) {
            high ^= mix(low ^ pair[0]) & self.high_mask;
            low ^= mix(high ^ pair[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

/// The golden ratio as a fraction of 64 bits: multiples of it are spread evenly.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every bit of the input changes every bit of the output (the finaliser of SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
