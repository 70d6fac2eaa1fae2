//! The host memory that this crate has registered.
//!
//! libcuda does not tell allocated from registered host memory. The list is global, since the
//! memory belongs to the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::lock::lock;

static REGISTERED: Mutex<AddressRanges> = Mutex::new(AddressRanges::EMPTY);

/// Locks the list. The driver must not be called meanwhile.
pub(crate) fn registered() -> MutexGuard<'static, AddressRanges> {
    lock(&REGISTERED)
}

/// Address ranges that do not overlap.
pub(crate) struct AddressRanges {
    bytes_by_base: BTreeMap<u64, u64>,
}

impl AddressRanges {
    const EMPTY: Self = Self {
        bytes_by_base: BTreeMap::new(),
    };

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
        let last = self.bytes_by_base.range(..=address).next_back();
        last.is_some_and(|(base, bytes)| address - base < *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::AddressRanges;

    /// The addresses below 120 that are held.
    fn held(ranges: &AddressRanges) -> Vec<u64> {
        (0..120).filter(|at| ranges.contains(*at)).collect()
    }

    #[test]
    fn a_range_contains_its_addresses_and_no_others() {
        let mut ranges = AddressRanges::EMPTY;
        ranges.insert(100, 10);
        ranges.insert(110, 5);
        assert_eq!(held(&ranges), (100..115).collect::<Vec<_>>());
        ranges.remove(100);
        assert_eq!(held(&ranges), (110..115).collect::<Vec<_>>());
        // Only the base removes a range.
        ranges.remove(112);
        assert!(ranges.contains(112));
    }

    #[test]
    fn overlapping_ranges_are_removed() {
        let mut ranges = AddressRanges::EMPTY;
        for base in [0, 10, 20, 30] {
            ranges.insert(base, 10);
        }
        ranges.remove_overlapping(15, 10);
        let expected: Vec<_> = (0..10).chain(30..40).collect();
        assert_eq!(held(&ranges), expected);
    }
}
