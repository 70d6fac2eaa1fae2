//! The right result.

/// A sum in about twice a double's digits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reference {
    /// The sum, rounded to a double.
    pub(super) value: f64,
    /// What rounding lost.
    rest: f64,
}

impl Reference {
    /// The dot product: products are exact in a double, and what each addition loses is added up.
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

    /// How far a result is from it, as a share of it.
    pub(super) fn distance(&self, result: f64) -> f64 {
        let off = ((result - self.value) - self.rest).abs();
        match self.value {
            0.0 => off,
            value => off / value.abs(),
        }
    }
}

/// A sum, and exactly what rounding it lost.
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
    fn what_plain_addition_loses_is_kept() {
        // 2^60 and a thousand ones: each alone is lost in a double.
        let mut x = vec![1.0f32; 1001];
        x[0] = 2f32.powi(60);
        let y = vec![1.0f32; 1001];
        let exact = (1i128 << 60) + 1000;
        let reference = Reference::of(&x, &y);
        assert_eq!(reference.value as i128 + reference.rest as i128, exact);
        let off = reference.distance(reference.value);
        assert!(off > 0.0 && off < f64::EPSILON / 2.0, "{off}");
    }

    #[test]
    fn nothing_is_zero_and_not_off() {
        let reference = Reference::of(&[], &[]);
        assert_eq!((reference.value, reference.distance(0.0)), (0.0, 0.0));
        assert_eq!(reference.distance(2.0), 2.0);
    }
}
