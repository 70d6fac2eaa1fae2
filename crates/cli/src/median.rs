//! The median.

/// The item with the median key; of an even number of items, the lower of the middle two.
///
/// # Panics
/// If there are no items.
pub(crate) fn median_by_key<T, K: Ord>(mut items: Vec<T>, key: impl FnMut(&T) -> K) -> T {
    items.sort_by_key(key);
    items.swap_remove((items.len() - 1) / 2)
}
