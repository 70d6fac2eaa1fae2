//! Test data.

use crate::{NotPassed, Outcome};

/// `bytes` pseudo-random bytes of a seed.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut out = Vec::with_capacity(bytes.next_multiple_of(8));
    while out.len() < bytes {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        out.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// Little-endian bytes of numbers.
pub(crate) fn bytes_of_u32(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Little-endian bytes of numbers.
pub(crate) fn bytes_of_u16(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Numbers from little-endian bytes.
pub(crate) fn u32_of_bytes(bytes: &[u8]) -> Vec<u32> {
    let (words, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty(), "not a whole number of words");
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Little-endian bytes of numbers.
pub(crate) fn bytes_of_f32(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Fails the case unless the bytes are these.
pub(crate) fn check_bytes(found: &[u8], expected: &[u8], what: &str) -> Outcome {
    match difference(found, expected) {
        None => Ok(()),
        Some(difference) => Err(NotPassed::Failed(format!("{what}: {difference}"))),
    }
}

/// Describes where two byte strings first differ; `None` if they are equal.
fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    if found == expected {
        return None;
    }
    if found.len() != expected.len() {
        return Some(format!(
            "{} bytes instead of {}",
            found.len(),
            expected.len()
        ));
    }
    let at = found.iter().zip(expected).position(|(f, e)| f != e)?;
    Some(format!(
        "byte {at} of {} is {:#04x} instead of {:#04x}",
        found.len(),
        found[at],
        expected[at]
    ))
}
