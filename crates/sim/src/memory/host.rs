//! Page-locked host memory, allocated or registered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{HostBytes, PinnedAlloc};

/// How a range came to be page-locked.
pub(crate) enum Origin {
    Allocated(PinnedAlloc),
    Registered,
}

/// A page-locked range.
pub(crate) struct Pin {
    /// Stands for the address in traces, where addresses must not appear.
    pub(crate) id: u64,
    pub(crate) range: HostBytes,
    pub(crate) origin: Origin,
    /// Kernels can access it.
    pub(crate) mapped: bool,
    /// The device must not write it.
    pub(crate) read_only: bool,
}

/// How a range of addresses relates to the page-locked ones.
pub(crate) enum Coverage<'a> {
    /// No byte of it is page-locked.
    Pageable,
    /// All of it is in one page-locked range.
    Pinned(&'a Pin),
    /// Part of it is, which drivers reject.
    Partly,
    /// Part of it is a freed pinned allocation.
    Freed,
}

/// All page-locked ranges of the process, by address.
#[derive(Default)]
pub(crate) struct HostMemory {
    pins: BTreeMap<usize, Pin>,
    /// Bases of freed allocations that have not been reused.
    freed: BTreeSet<usize>,
    /// Freed allocations, kept for a while to detect their use.
    quarantined: BTreeMap<usize, PinnedAlloc>,
    /// Their bases, oldest first.
    order: VecDeque<usize>,
    quarantined_bytes: usize,
    next_id: u64,
}

/// Limits of the quarantine.
const QUARANTINE_BYTES: usize = 64 << 20;
const QUARANTINE_BLOCKS: usize = 256;

impl HostMemory {
    /// Adds a range that overlaps no other one.
    pub(crate) fn insert(
        &mut self,
        range: HostBytes,
        origin: Origin,
        mapped: bool,
        read_only: bool,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        self.freed.remove(&range.address());
        let pin = Pin {
            id,
            range,
            origin,
            mapped,
            read_only,
        };
        self.pins.insert(range.address(), pin);
    }

    /// The range that begins at `address`.
    pub(crate) fn at(&self, address: usize) -> Option<&Pin> {
        self.pins.get(&address)
    }

    /// Removes the range that begins at `address`.
    pub(crate) fn remove(&mut self, address: usize) -> Option<Pin> {
        let pin = self.pins.remove(&address)?;
        if let Origin::Allocated(_) = pin.origin {
            self.freed.insert(address);
        }
        Some(pin)
    }

    /// Keeps a freed allocation, and frees the oldest ones beyond the limits.
    pub(crate) fn quarantine(&mut self, memory: PinnedAlloc) {
        let base = memory.range().address();
        self.quarantined_bytes += memory.range().len();
        self.order.push_back(base);
        self.quarantined.insert(base, memory);
        while self.quarantined_bytes > QUARANTINE_BYTES || self.order.len() > QUARANTINE_BLOCKS {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(memory) = self.quarantined.remove(&oldest) {
                self.quarantined_bytes -= memory.range().len();
                memory.free();
            }
        }
    }

    /// Whether the range overlaps a quarantined allocation.
    fn is_quarantined(&self, address: usize, end: usize) -> bool {
        let before = self.quarantined.range(..end).next_back();
        before.is_some_and(|(_, memory)| memory.range().end() > address)
    }

    /// Whether an allocation that began here has been freed.
    pub(crate) fn was_freed(&self, address: usize) -> bool {
        self.freed.contains(&address)
    }

    /// The range that contains `address`.
    pub(crate) fn find(&self, address: usize) -> Option<&Pin> {
        let (_, pin) = self.pins.range(..=address).next_back()?;
        (address < pin.range.end()).then_some(pin)
    }

    /// How `bytes` from `address` relate to the page-locked ranges.
    pub(crate) fn coverage(&self, address: usize, bytes: usize) -> Coverage<'_> {
        let end = address.saturating_add(bytes);
        match self.find(address) {
            Some(pin) if end <= pin.range.end() => Coverage::Pinned(pin),
            Some(_) => Coverage::Partly,
            None if self.pins.range(address..end).next().is_some() => Coverage::Partly,
            None if self.is_quarantined(address, end) => Coverage::Freed,
            None => Coverage::Pageable,
        }
    }

    /// All ranges, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.pins.values()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        for memory in std::mem::take(&mut self.quarantined).into_values() {
            memory.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantine(memory: &mut HostMemory, bytes: usize) -> usize {
        let block = PinnedAlloc::new(bytes).expect("memory");
        let base = block.range().address();
        memory.quarantine(block);
        base
    }

    #[test]
    fn freed_memory_is_quarantined_up_to_the_limits() {
        let mut memory = HostMemory::default();
        let first = quarantine(&mut memory, 64);
        let touches_first = |memory: &HostMemory| memory.is_quarantined(first + 63, first + 64);
        assert!(touches_first(&memory));
        assert!(
            !memory.is_quarantined(first + 64, first + 65),
            "one past its end"
        );
        for _ in 1..QUARANTINE_BLOCKS {
            quarantine(&mut memory, 64);
        }
        assert!(touches_first(&memory), "at the limit");
        quarantine(&mut memory, 64);
        assert_eq!(memory.quarantined.len(), QUARANTINE_BLOCKS);
        assert!(
            !memory.quarantined.contains_key(&first),
            "the oldest is freed"
        );
        quarantine(&mut memory, QUARANTINE_BYTES + 1);
        assert_eq!((memory.quarantined.len(), memory.quarantined_bytes), (0, 0));
    }
}
