//! The two vectors, and their exact dot product.

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
    let reserved = vector.try_reserve_exact(items);
    reserved.context("not enough memory for the vectors; use a smaller -n")?;
    vector.extend((0..items as u64).map(|i| element(seed, 2 * i + offset)));
    Ok(vector)
}

fn element(seed: u64, index: u64) -> f32 {
    // An odd number of 24 bits over 2^24: exact, and neither 0 nor 1.
    let odd = (SplitMix64::nth(seed, index) >> 41) << 1 | 1;
    odd as f32 / 16_777_216.0
}

/// A sum with about twice the precision of a double.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reference {
    /// The sum, rounded to a double.
    pub(super) value: f64,
    /// The rounding error of `value`.
    rest: f64,
}

impl Reference {
    /// The dot product. Products are exact in a double; the rounding errors of the additions are summed.
    pub(super) fn of(x: &[f32], y: &[f32]) -> Self {
        let (mut sum, mut lost) = (0.0, 0.0);
        for (x, y) in x.iter().zip(y) {
            let (next, error) = two_sum(sum, f64::from(*x) * f64::from(*y));
            sum = next;
            lost += error;
        }
        let (value, rest) = two_sum(sum, lost);
        Self { value, rest }
    }

    pub(super) fn relative_error(&self, result: f64) -> f64 {
        let error = ((result - self.value) - self.rest).abs();
        match self.value {
            0.0 => error,
            value => error / value.abs(),
        }
    }
}

/// A sum and its exact rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    let of_a = sum - of_b;
    (sum, (a - of_a) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_between_0_and_1_and_depend_on_the_seed() {
        let [x, y] = random(10_000, 7).expect("small");
        let mut all = x.iter().chain(&y);
        assert!(all.all(|number| *number > 0.0 && *number < 1.0));
        let mean = x.iter().map(|number| f64::from(*number)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(x, y);
        assert_eq!(random(10_000, 7).expect("small"), [x.clone(), y]);
        assert_ne!(random(10_000, 8).expect("small")[0], x);
        // A longer vector has the same start.
        assert_eq!(random(5_000, 7).expect("small")[0], x[..5_000]);
    }

    #[test]
    fn rounding_errors_are_kept() {
        // 2^60 and a thousand ones, each of which alone would be lost.
        let mut x = vec![1.0f32; 1001];
        x[0] = 2f32.powi(60);
        let y = vec![1.0f32; 1001];
        let exact = (1i128 << 60) + 1000;
        let reference = Reference::of(&x, &y);
        assert_eq!(reference.value as i128 + reference.rest as i128, exact);
        let error = reference.relative_error(reference.value);
        assert!(error > 0.0 && error < f64::EPSILON / 2.0, "{error}");
    }

    #[test]
    fn the_empty_product_is_zero() {
        let reference = Reference::of(&[], &[]);
        assert_eq!((reference.value, reference.relative_error(0.0)), (0.0, 0.0));
        assert_eq!(reference.relative_error(2.0), 2.0);
    }
}
