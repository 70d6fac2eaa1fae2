//! A record of what this crate has registered.
//!
//! libcuda tells host memory that it knows from memory that it does not, yet not whether it
//! allocated or registered it. The record is one for the process, as the memory is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static REGISTERED: Mutex<Ranges> = Mutex::new(Ranges::new());

/// The record. No call of the driver is made while it is held.
pub(crate) fn registered() -> MutexGuard<'static, Ranges> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ranges of addresses that do not overlap, by their base.
pub(crate) struct Ranges {
    bytes_by_base: BTreeMap<u64, u64>,
}

impl Ranges {
    const fn new() -> Self {
        Self {
            bytes_by_base: BTreeMap::new(),
        }
    }

    /// Adds a range, in place of those that it overlaps: these are gone, or the driver would not
    /// have given the memory out.
    pub(crate) fn insert(&mut self, base: u64, bytes: u64) {
        self.remove_overlapping(base, bytes);
        self.bytes_by_base.insert(base, bytes);
    }

    /// Takes out the range with this base.
    pub(crate) fn remove(&mut self, base: u64) {
        self.bytes_by_base.remove(&base);
    }

    /// Takes out every range that shares an address with this one.
    pub(crate) fn remove_overlapping(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        while let Some((&found, &found_bytes)) = self.bytes_by_base.range(..end).next_back() {
            if found.saturating_add(found_bytes) <= base {
                return;
            }
            self.bytes_by_base.remove(&found);
        }
    }

    /// Whether some range holds the address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.bytes_by_base
            .range(..=address)
            .next_back()
            .is_some_and(|(base, bytes)| address - base < *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        let mut ranges = Ranges::new();
        ranges.insert(100, 10);
        ranges.insert(110, 5);
        let held: Vec<u64> = (95..120).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (100..115).collect::<Vec<_>>());
        ranges.remove(100);
        let held: Vec<u64> = (95..120).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (110..115).collect::<Vec<_>>());
    }

    #[test]
    fn only_a_base_takes_a_range_out() {
        let mut ranges = Ranges::new();
        ranges.insert(100, 10);
        ranges.remove(105);
        assert!(ranges.contains(105));
    }

    #[test]
    fn new_memory_takes_the_place_of_what_it_overlaps() {
        let mut ranges = Ranges::new();
        ranges.insert(0, 10);
        ranges.insert(10, 10);
        ranges.insert(20, 10);
        ranges.insert(30, 10);
        ranges.remove_overlapping(15, 10);
        let held: Vec<u64> = (0..40).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(held, (0..10).chain(30..40).collect::<Vec<_>>());
    }
}
