//! Reading measured values: the median, and times of one engine.

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

/// Corrects when work started on an engine that does one thing at a time.
///
/// A timing event before a piece of work fires when its stream gets there. If the engine is still busy with
/// other work then, the work starts only after that. `spans` are the start and the end of each piece of work of
/// one engine, in the order in which they ended.
pub fn start_after_previous<'a>(spans: impl IntoIterator<Item = (&'a mut u64, u64)>) {
    let mut free_ns = 0;
    for (start_ns, end_ns) in spans {
        *start_ns = (*start_ns).max(free_ns).min(end_ns);
        free_ns = end_ns;
    }
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

    #[test]
    fn work_starts_when_its_engine_is_free() {
        let mut spans = [(0, 10), (0, 20), (25, 40), (50, 45)];
        start_after_previous(spans.iter_mut().map(|(start, end)| (start, *end)));
        assert_eq!(spans, [(0, 10), (10, 20), (25, 40), (45, 45)]);
    }
}
