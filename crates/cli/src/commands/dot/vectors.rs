//! The two vectors.

use anyhow::Context;

/// Two vectors of numbers between 0 and 1, neither included, that depend on the seed alone. They are
/// positive, so that nothing cancels out and a relative error has a meaning.
pub(super) fn make(items: usize, seed: u64) -> anyhow::Result<[Vec<f32>; 2]> {
    // One sequence, of which each vector takes every second number.
    Ok([vector(items, seed, 0)?, vector(items, seed, 1)?])
}

fn vector(items: usize, seed: u64, which: u64) -> anyhow::Result<Vec<f32>> {
    let mut vector = Vec::new();
    vector
        .try_reserve_exact(items)
        .context("no room for the vectors; choose a smaller -n")?;
    vector.extend((0..items as u64).map(|i| number(seed, 2 * i + which)));
    Ok(vector)
}

/// Number `at` of a sequence: the upper bits of a counter, thoroughly mixed.
fn number(seed: u64, at: u64) -> f32 {
    let mut bits = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // An odd number of 24 bits, over 2^24: exact, and neither 0 nor 1.
    let odd = (bits >> 41) << 1 | 1;
    odd as f32 / 16_777_216.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_between_0_and_1_and_follow_the_seed() {
        let [x, y] = make(10_000, 7).expect("small");
        assert!(
            x.iter()
                .chain(&y)
                .all(|number| *number > 0.0 && *number < 1.0)
        );
        let mean = x.iter().map(|number| f64::from(*number)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(x, y);
        assert_eq!(make(10_000, 7).expect("small"), [x.clone(), y]);
        assert_ne!(make(10_000, 8).expect("small")[0], x);
        assert_eq!(
            make(5_000, 7).expect("small")[0],
            x[..5_000],
            "longer goes on"
        );
    }
}
