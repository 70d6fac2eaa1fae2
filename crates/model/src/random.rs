//! Pseudo-random numbers that depend on a seed alone.

/// The SplitMix64 generator: the same seed gives the same numbers on every machine.
///
/// Fast and evenly spread, but not for secrets. Its output never changes, so seeds can be kept.
///
/// ```
/// use pinlane_model::SplitMix64;
///
/// let mut random = SplitMix64::new(7);
/// let mut cards = [1, 2, 3, 4];
/// random.shuffle(&mut cards);
/// assert!(cards.contains(random.pick(&[1, 2])));
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// What the state grows by with every number: 2^64 divided by the golden ratio.
    pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Creates a generator.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        Self::mix(self.state)
    }

    /// Returns number `index` of the sequence of a seed, without computing those before it.
    pub const fn nth(seed: u64, index: u64) -> u64 {
        Self::new(seed.wrapping_add(index.wrapping_mul(Self::STEP))).next_u64()
    }

    /// Returns a number from 0 to `limit` - 1.
    ///
    /// Takes the remainder, which favours small numbers by less than `limit` in 2^64.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// Returns an index into a slice of `len` elements.
    ///
    /// # Panics
    /// If `len` is 0.
    pub const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns one of the elements.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Shuffles the elements (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Mixes 64 bits so that every input bit affects every output bit; different inputs give different outputs.
    ///
    /// This is the generator's output function. On its own it is a hash of an integer.
    pub const fn mix(mut bits: u64) -> u64 {
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers: [u64; 5] = std::array::from_fn(|_| random.next_u64());
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, reference);
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_every_value() {
        let mut random = SplitMix64::new(0);
        let mut seen = [false; 7];
        (0..200).for_each(|_| seen[random.index(7)] = true);
        assert_eq!(seen, [true; 7]);
        assert_eq!(random.below(1), 0);
        assert_eq!(random.pick(&["only"]), &"only");
    }

    #[test]
    fn any_number_of_the_sequence_can_be_computed_alone() {
        let mut random = SplitMix64::new(7);
        for index in 0..100 {
            assert_eq!(SplitMix64::nth(7, index), random.next_u64());
        }
    }

    #[test]
    fn a_shuffle_keeps_all_items_and_depends_on_the_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(3), shuffled(3));
        assert_ne!(shuffled(3), shuffled(4));
        let mut items = shuffled(3);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }
}
