//! The exact result.

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

    /// The relative error of a result.
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
