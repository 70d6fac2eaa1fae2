//! The two vectors.

use anyhow::Context;
use pinlane_model::SplitMix64;

/// Two vectors of random elements between 0 and 1, both excluded. Positive elements cannot cancel out, so
/// relative errors are meaningful.
pub(super) fn random(items: usize, seed: u64) -> anyhow::Result<[Vec<f32>; 2]> {
    // Each vector takes every second number of one sequence.
    Ok([vector(items, seed, 0)?, vector(items, seed, 1)?])
}

fn vector(items: usize, seed: u64, offset: u64) -> anyhow::Result<Vec<f32>> {
    let mut vector = Vec::new();
    vector
        .try_reserve_exact(items)
        .context("not enough memory for the vectors; use a smaller -n")?;
    vector.extend((0..items as u64).map(|i| element(seed, 2 * i + offset)));
    Ok(vector)
}

fn element(seed: u64, index: u64) -> f32 {
    // An odd number of 24 bits over 2^24: exact, and neither 0 nor 1.
    let odd = (SplitMix64::nth(seed, index) >> 41) << 1 | 1;
    odd as f32 / 16_777_216.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_between_0_and_1_and_depend_on_the_seed() {
        let [x, y] = random(10_000, 7).expect("small");
        assert!(
            x.iter()
                .chain(&y)
                .all(|number| *number > 0.0 && *number < 1.0)
        );
        let mean = x.iter().map(|number| f64::from(*number)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(x, y);
        assert_eq!(random(10_000, 7).expect("small"), [x.clone(), y]);
        assert_ne!(random(10_000, 8).expect("small")[0], x);
        assert_eq!(
            random(5_000, 7).expect("small")[0],
            x[..5_000],
            "a longer vector has the same start"
        );
    }
}
