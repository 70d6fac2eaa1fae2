//! Reproducible test data, and comparing it.

/// Numbers that depend on a seed alone (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Bytes that are different in every place.
pub fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        pattern.extend_from_slice(&random.next().to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}

/// Numbers that are different in every place.
pub fn words(len: usize, seed: u64) -> Vec<u32> {
    let bytes = pattern(len * 4, seed);
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Fails with the place of the first difference, not with a dump of all bytes.
#[track_caller]
pub fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    if found == expected {
        return; // much faster than the search
    }
    if let Some(at) = found.iter().zip(expected).position(|(f, e)| f != e) {
        let (found, must) = (&found[at], &expected[at]);
        panic!("{what}: element {at} is {found:?}, must be {must:?}");
    }
}
