//! Counts the allocations of a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static TIMES: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work` and says how many allocations it made.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = TIMES.get();
    let made = work();
    (made, TIMES.get() - before)
}

// SAFETY: every call goes to the system allocator; counting uses a thread-local cell that needs no
// allocation and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TIMES.set(TIMES.get() + 1);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `alloc` got it from the system allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn allocations_are_counted() {
    let (kept, times) = allocations(|| (vec![0_u8; 10], Box::new(1)));
    assert_eq!((kept.0.len(), times), (10, 2));
}
