//! Raw access to host memory: the only place that dereferences a caller's pointer.
//!
//! It never creates references: the caller may hold some to the same bytes.

use std::ptr::NonNull;

use pinlane_driver::HostPtr;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Size of the stack buffer for hashing.
const WINDOW_BYTES: usize = 4096;

/// A range of host memory that the device may access.
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
