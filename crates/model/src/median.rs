//! The median of measured values.

use std::cmp::Ordering;

/// Returns the median of some values; of an even number of values, the larger one of the middle two.
///
/// ```
/// use pinlane_model::median;
///
/// assert_eq!(median([5, 1, 3]), 3);
/// assert_eq!(median(vec![0.5, 0.25]), 0.5);
/// ```
///
/// # Panics
/// If there are no values.
pub fn median<T: PartialOrd>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    let middle = values.len() / 2;
    // Values that cannot be compared (NaN) count as equal.
    values.select_nth_unstable_by(middle, |a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    values.swap_remove(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn half_of_the_values_lie_on_either_side() {
        assert_eq!(median([7]), 7);
        assert_eq!(median([4, 1, 3, 2]), 3);
        assert_eq!(median([9, 9, 1, 1, 5]), 5);
        assert_eq!(median([2.5, -1.0, 0.0]), 0.0);
        let times = [3, 1, 2].map(Duration::from_millis);
        assert_eq!(median(times), Duration::from_millis(2));
    }

    #[test]
    #[should_panic]
    fn no_values_have_no_median() {
        median([0_u64; 0]);
    }
}
