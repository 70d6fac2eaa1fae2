//! Raw access to host memory: the only place that dereferences a caller's pointer.
//!
//! Memory of callers is reached through raw pointers only, never through references: the caller
//! may hold references to the same bytes, as long as nobody writes.

use std::ptr::NonNull;

use pinlane_driver::HostPtr;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes that pass through the stack at a time when host memory is hashed.
const WINDOW_BYTES: usize = 4096;

/// A range of host memory that the device may touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostBytes {
    ptr: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the range is named by a driver call whose contract keeps it valid, whichever thread of
// the simulator moves its bytes; the address itself is plain data.
unsafe impl Send for HostBytes {}

impl HostBytes {
    /// Names a range.
    ///
    /// # Safety
    /// As long as the value is used to read or write, the range is valid for that, and nobody
    /// touches it in a conflicting way: what the driver's calls ask of their callers.
    pub(crate) unsafe fn new(ptr: HostPtr, bytes: usize) -> Self {
        Self { ptr, bytes }
    }

    /// The pointer that names it.
    pub(crate) fn ptr(self) -> HostPtr {
        self.ptr
    }

    /// First address.
    pub(crate) fn address(self) -> usize {
        self.ptr.addr().get()
    }

    /// Length.
    pub(crate) fn len(self) -> usize {
        self.bytes
    }

    /// First address after the range.
    pub(crate) fn end(self) -> usize {
        self.address() + self.bytes
    }

    /// Whether a range of addresses has a byte in common with this one.
    pub(crate) fn overlaps(self, start: usize, end: usize) -> bool {
        self.address() < end && start < self.end()
    }

    /// A part of the range.
    pub(crate) fn part(self, offset: usize, bytes: usize) -> Self {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: `offset` is at most the length, so the sum stays inside or one past the range.
        let ptr = unsafe { self.ptr.add(offset) };
        Self { ptr, bytes }
    }

    /// Reads from `offset` on.
    pub(crate) fn read(self, offset: usize, target: &mut [u8]) {
        let source = self.part(offset, target.len()).ptr.as_ptr();
        // SAFETY: the part is inside the range, which `new` promised to be readable, and `target`
        // is a live exclusive slice, so it cannot overlap memory that others may write.
        unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) }
    }

    /// Writes from `offset` on.
    pub(crate) fn write(self, offset: usize, source: &[u8]) {
        let target = self.part(offset, source.len()).ptr.as_ptr();
        // SAFETY: the part is inside the range, which `new` promised to be writable where it is
        // the target of a copy, and `source` belongs to the simulator.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) }
    }

    /// Hash of the bytes as they are now.
    pub(crate) fn hash(self) -> u64 {
        let mut window = [0; WINDOW_BYTES];
        if self.bytes <= WINDOW_BYTES {
            let window = &mut window[..self.bytes];
            self.read(0, window);
            return xxh3_64(window);
        }
        let mut hasher = Xxh3::new();
        let mut at = 0;
        while at < self.bytes {
            let window = &mut window[..WINDOW_BYTES.min(self.bytes - at)];
            self.read(at, window);
            hasher.update(window);
            at += window.len();
        }
        hasher.digest()
    }
}
