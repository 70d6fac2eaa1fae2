//! Test data.

use pinlane_model::SplitMix64;

use crate::{NotPassed, Outcome};

/// `bytes` pseudo-random bytes of a seed.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let mut out = Vec::with_capacity(bytes.next_multiple_of(8));
    while out.len() < bytes {
        out.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// Numbers of all sizes and both signs, so that the order of additions shows in the bits.
pub(crate) fn vectors(len: usize) -> [Vec<f32>; 2] {
    [0x9e37_79b9_u32, 0x85eb_ca6b].map(|factor| {
        let mixed = (1..=len as u32).map(|i| i.wrapping_mul(factor));
        let number = |bits: u32| f32::from_bits(bits & 0x87ff_ffff | 0x3800_0000);
        mixed.map(number).collect()
    })
}

/// Fails the case unless the bytes are these.
pub(crate) fn check_bytes(found: &[u8], expected: &[u8], what: &str) -> Outcome {
    let (len, must) = (found.len(), expected.len());
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(expected).position(|(f, e)| f != e);
    let difference = match at.filter(|_| len == must) {
        None => format!("{len} bytes instead of {must}"),
        Some(at) => {
            let (found, expected) = (found[at], expected[at]);
            format!("byte {at} of {len} is {found:#04x} instead of {expected:#04x}")
        }
    };
    Err(NotPassed::Failed(format!("{what}: {difference}")))
}
