//! Reproducible test data, and comparing it.

use pinlane::model::SplitMix64;

/// Bytes that are different in every place.
pub fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        pattern.extend_from_slice(&random.next_u64().to_le_bytes());
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
