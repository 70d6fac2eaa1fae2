//! Page-locked host memory: what was allocated, and what was registered in place.

use std::collections::{BTreeMap, BTreeSet};

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
}

/// All page-locked ranges of the process, by address.
pub(crate) struct HostMemory {
    pins: BTreeMap<usize, Pin>,
    /// Bases of freed allocations that nothing new was allocated at since.
    freed: BTreeSet<usize>,
    next_id: u64,
}

impl HostMemory {
    pub(crate) fn new() -> Self {
        Self {
            pins: BTreeMap::new(),
            freed: BTreeSet::new(),
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
            None => Coverage::Pageable,
        }
    }

    /// All ranges, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.pins.values()
    }
}
