//! Page-locked host memory: what was allocated, and what was registered in place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::host_bytes::HostBytes;
use crate::pinned_alloc::PinnedAlloc;

/// How a range came to be page-locked.
pub(crate) enum Origin {
    Allocated(PinnedAlloc),
    Registered,
}

/// A page-locked range.
pub(crate) struct Pin {
    /// Counts up over the run; stands for the address wherever that must not show.
    pub(crate) id: u64,
    pub(crate) range: HostBytes,
    pub(crate) origin: Origin,
    /// Kernels see it.
    pub(crate) mapped: bool,
    /// The device must not write it.
    pub(crate) read_only: bool,
}

/// How a range of addresses lies to the page-locked ones.
pub(crate) enum Coverage<'a> {
    /// No byte of it is page-locked.
    Pageable,
    /// All of it lies in one page-locked range.
    Pinned(&'a Pin),
    /// Some of it does: no driver takes that.
    Partly,
    /// Some of it was page-locked and is freed.
    Freed,
}

/// All page-locked ranges of the process, by address.
pub(crate) struct HostMemory {
    pins: BTreeMap<usize, Pin>,
    /// Bases of freed allocations that nothing new was allocated at since.
    freed: BTreeSet<usize>,
    /// Freed allocations, kept from the system for a while so that their use is seen.
    quarantined: BTreeMap<usize, PinnedAlloc>,
    /// Their bases, oldest first.
    order: VecDeque<usize>,
    quarantined_bytes: usize,
    next_id: u64,
}

/// The most that freed allocations may hold, and how many of them there may be.
const QUARANTINE_BYTES: usize = 64 << 20;
const QUARANTINE_BLOCKS: usize = 256;

impl HostMemory {
    pub(crate) fn new() -> Self {
        Self {
            pins: BTreeMap::new(),
            freed: BTreeSet::new(),
            quarantined: BTreeMap::new(),
            order: VecDeque::new(),
            quarantined_bytes: 0,
            next_id: 0,
        }
    }

    /// Adds a range that overlaps no other.
    pub(crate) fn insert(
        &mut self,
        range: HostBytes,
        origin: Origin,
        mapped: bool,
        read_only: bool,
    ) -> u64 {
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
        id
    }

    /// The range that begins at `address`.
    pub(crate) fn at(&self, address: usize) -> Option<&Pin> {
        self.pins.get(&address)
    }

    /// Forgets the range that begins at `address`.
    pub(crate) fn remove(&mut self, address: usize) -> Option<Pin> {
        let pin = self.pins.remove(&address)?;
        if let Origin::Allocated(_) = pin.origin {
            self.freed.insert(address);
        }
        Some(pin)
    }

    /// Keep a freed allocation, and give the oldest ones back to the system.
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

    /// Whether a byte of the range lies in a freed allocation.
    fn is_quarantined(&self, address: usize, end: usize) -> bool {
        let before = self.quarantined.range(..end).next_back();
        before.is_some_and(|(_, memory)| memory.range().end() > address)
    }

    /// Whether an allocation began here and was freed.
    pub(crate) fn was_freed(&self, address: usize) -> bool {
        self.freed.contains(&address)
    }

    /// The range that holds `address`.
    pub(crate) fn find(&self, address: usize) -> Option<&Pin> {
        let (_, pin) = self.pins.range(..=address).next_back()?;
        (address < pin.range.end()).then_some(pin)
    }

    /// How `bytes` from `address` on lie to the page-locked ranges.
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
    fn freed_memory_is_kept_for_a_while_and_then_given_back() {
        let mut memory = HostMemory::new();
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
        assert!(touches_first(&memory), "as many as may be");
        quarantine(&mut memory, 64);
        assert_eq!(memory.quarantined.len(), QUARANTINE_BLOCKS);
        assert!(
            !memory.quarantined.contains_key(&first),
            "the oldest has gone"
        );
        quarantine(&mut memory, QUARANTINE_BYTES + 1);
        assert_eq!((memory.quarantined.len(), memory.quarantined_bytes), (0, 0));
    }
}
