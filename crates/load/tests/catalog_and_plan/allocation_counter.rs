//! Counts the memory a thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Runs `work`, and returns its peak of allocated bytes.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let made = work();
    (made, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

fn count(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: forwards to the system allocator. Counting uses thread-local cells that need no allocation and
// have no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `alloc` got it from the system allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn allocations_are_counted() {
    let (kept, peak) = peak_bytes(|| {
        drop(vec![0_u8; 100_000]);
        vec![0_u8; 10]
    });
    assert_eq!(kept.len(), 10);
    assert!((100_000..101_000).contains(&peak), "{peak}");
}
