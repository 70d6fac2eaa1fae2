//! The host memory that this crate has registered.
//!
//! libcuda does not tell allocated from registered host memory. The list is global, since the
//! memory belongs to the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::sync::lock;

static REGISTERED: Mutex<AddressRanges> = Mutex::new(AddressRanges::new());

/// Locks the list. The driver must not be called meanwhile.
pub(crate) fn registered() -> MutexGuard<'static, AddressRanges> {
    lock(&REGISTERED)
}

/// Address ranges that do not overlap.
pub(crate) struct AddressRanges {
    bytes_by_base: BTreeMap<u64, u64>,
}

impl AddressRanges {
    const fn new() -> Self {
        Self {
            bytes_by_base: BTreeMap::new(),
        }
    }

    /// Adds a range and removes those that it overlaps: their memory was freed, or the driver could
    /// not have reused it.
    pub(crate) fn insert(&mut self, base: u64, bytes: u64) {
        self.remove_overlapping(base, bytes);
        self.bytes_by_base.insert(base, bytes);
    }

    /// Removes the range with this base.
    pub(crate) fn remove(&mut self, base: u64) {
        self.bytes_by_base.remove(&base);
    }

    /// Removes every range that overlaps this one.
    pub(crate) fn remove_overlapping(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        while let Some((&found, &found_bytes)) = self.bytes_by_base.range(..end).next_back() {
            if found.saturating_add(found_bytes) <= base {
                return;
            }
            self.bytes_by_base.remove(&found);
        }
    }

    /// Whether a range contains the address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.bytes_by_base
            .range(..=address)
            .next_back()
            .is_some_and(|(base, bytes)| address - base < *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::AddressRanges;

    #[test]
    fn a_range_contains_its_addresses_and_no_others() {
        let mut ranges = AddressRanges::new();
        ranges.insert(100, 10);
        ranges.insert(110, 5);
        let held: Vec<u64> = (95..120).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (100..115).collect::<Vec<_>>());
        ranges.remove(100);
        let held: Vec<u64> = (95..120).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (110..115).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_base_removes_a_range() {
        let mut ranges = AddressRanges::new();
        ranges.insert(100, 10);
        ranges.remove(105);
        assert!(ranges.contains(105));
    }

    #[test]
    fn overlapping_ranges_are_removed() {
        let mut ranges = AddressRanges::new();
        ranges.insert(0, 10);
        ranges.insert(10, 10);
        ranges.insert(20, 10);
        ranges.insert(30, 10);
        ranges.remove_overlapping(15, 10);
        let held: Vec<u64> = (0..40).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (0..10).chain(30..40).collect::<Vec<_>>());
    }
}
