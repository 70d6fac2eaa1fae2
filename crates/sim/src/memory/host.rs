//! Host memory: page-locked ranges, allocated or registered, and raw access, which is the only place
//! that dereferences a caller's pointer.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ptr::NonNull;

use pinlane_driver::HostPtr;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

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
        let base = memory.range.address();
        self.quarantined_bytes += memory.range.len();
        self.order.push_back(base);
        self.quarantined.insert(base, memory);
        while self.quarantined_bytes > QUARANTINE_BYTES || self.order.len() > QUARANTINE_BLOCKS {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(memory) = self.quarantined.remove(&oldest) {
                self.quarantined_bytes -= memory.range.len();
                memory.free();
            }
        }
    }

    /// Whether the range overlaps a quarantined allocation.
    fn is_quarantined(&self, address: usize, end: usize) -> bool {
        let before = self.quarantined.range(..end).next_back();
        before.is_some_and(|(_, memory)| memory.range.end() > address)
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

/// Pinned memory is page-aligned.
const PAGE_BYTES: usize = 4096;
/// Blocks up to this size are filled with a pattern that exposes uses of uninitialised memory.
const POISON_LIMIT_BYTES: usize = 1 << 20;
const POISON: u8 = 0xcb;

/// Page-aligned memory. Dropping it does not free it: a program that forgot to free it may still
/// hold its address.
#[derive(Debug)]
pub(crate) struct PinnedAlloc {
    start: NonNull<u8>,
    layout: Layout,
    /// The usable range.
    pub(crate) range: HostBytes,
}

// SAFETY: it owns its memory, which any thread may use.
unsafe impl Send for PinnedAlloc {}

impl PinnedAlloc {
    /// Allocates; `None` if memory is exhausted or `bytes` is 0.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        // One page more, with a small alignment: the system zeroes such memory lazily, but not
        // memory of a large alignment.
        let total = bytes.checked_add(PAGE_BYTES)?;
        let layout = Layout::from_size_align(total, 16).ok()?;
        if bytes == 0 {
            return None;
        }
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = start.addr().get().wrapping_neg() % PAGE_BYTES;
        // SAFETY: `skip` is less than the additional page.
        let base = unsafe { start.add(skip) };
        // SAFETY: `bytes` from `base` are inside the allocation and initialised.
        let range = unsafe { HostBytes::new(base, bytes) };
        if bytes <= POISON_LIMIT_BYTES {
            range.write(0, &vec![POISON; bytes]);
        }
        Some(Self {
            start,
            layout,
            range,
        })
    }

    /// Frees the memory.
    pub(crate) fn free(self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout. `self` is consumed, so this
        // happens once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Size of the stack buffer for hashing.
const WINDOW_BYTES: usize = 4096;

/// A range of host memory that the device may access. It never creates references: the caller may hold
/// some to the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostBytes {
    ptr: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the contract of the driver call that passed the range keeps it valid for any thread of
// the simulator; the address itself is plain data.
unsafe impl Send for HostBytes {}

impl HostBytes {
    /// Creates a range.
    ///
    /// # Safety
    /// As long as the value is used to read or write, the range is valid for that and free of data
    /// races, as the driver's calls require of their callers.
    pub(crate) unsafe fn new(ptr: HostPtr, bytes: usize) -> Self {
        Self { ptr, bytes }
    }

    pub(crate) fn ptr(self) -> HostPtr {
        self.ptr
    }

    pub(crate) fn address(self) -> usize {
        self.ptr.addr().get()
    }

    pub(crate) fn len(self) -> usize {
        self.bytes
    }

    /// First address after the range.
    pub(crate) fn end(self) -> usize {
        self.address() + self.bytes
    }

    /// Whether it overlaps a range of addresses.
    pub(crate) fn overlaps(self, start: usize, end: usize) -> bool {
        self.address() < end && start < self.end()
    }

    /// A part of the range.
    pub(crate) fn part(self, offset: usize, bytes: usize) -> Self {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: `offset` is at most the length, so the result is inside or one past the range.
        let ptr = unsafe { self.ptr.add(offset) };
        Self { ptr, bytes }
    }

    /// Reads from `offset`.
    pub(crate) fn read(self, offset: usize, target: &mut [u8]) {
        let source = self.part(offset, target.len()).ptr.as_ptr();
        // SAFETY: the part is inside the range, which is readable by the contract of `new`. The
        // exclusive slice `target` cannot overlap it.
        unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) }
    }

    /// Writes from `offset`.
    pub(crate) fn write(self, offset: usize, source: &[u8]) {
        let target = self.part(offset, source.len()).ptr.as_ptr();
        // SAFETY: the part is inside the range, which is writable by the contract of `new` if it is
        // the target of a copy. `source` belongs to the simulator.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) }
    }

    /// Hash of the current bytes.
    pub(crate) fn hash(self) -> u64 {
        let mut window = [0; WINDOW_BYTES];
        if self.bytes <= WINDOW_BYTES {
            let window = &mut window[..self.bytes];
            self.read(0, window);
            return xxh3_64(window); // much faster for short inputs
        }
        let mut hasher = Xxh3::new();
        for at in (0..self.bytes).step_by(WINDOW_BYTES) {
            let window = &mut window[..WINDOW_BYTES.min(self.bytes - at)];
            self.read(at, window);
            hasher.update(window);
        }
        hasher.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantine(memory: &mut HostMemory, bytes: usize) -> usize {
        let block = PinnedAlloc::new(bytes).expect("memory");
        let base = block.range.address();
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
