//! Faults in the caller's memory before it is written.
//!
//! Writing to untouched memory is slow: the kernel finds, clears and maps each page on the way. Threads
//! that write side by side fault the same huge page several times over, so it is faster to fault pages in
//! first, each on one thread.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::page_bytes;
use super::pinning::{HUGE_PAGE_BYTES, Pages, System};
use crate::helper_threads;

/// How much one thread takes at a time.
const PIECE_BYTES: usize = 2 * HUGE_PAGE_BYTES;

/// Number of pages sampled to tell whether memory is fresh.
const SAMPLES: usize = 16;

/// Whether most of the memory is still untouched.
pub(crate) fn is_fresh(start: *mut u8, bytes: usize) -> bool {
    if cfg!(miri) || bytes < SAMPLES * page_bytes() {
        return false;
    }
    let fresh = (0..SAMPLES).filter(|sample| {
        let at = start.wrapping_add(bytes / SAMPLES * sample).addr();
        let page = start.with_addr(at / page_bytes() * page_bytes());
        let mut resident = 0u8;
        // SAFETY: `mincore` only queries; it writes one byte for one page.
        let asked = unsafe { libc::mincore(page.cast(), page_bytes(), &raw mut resident) };
        asked == 0 && resident & 1 == 0
    });
    fresh.count() > SAMPLES / 2
}

/// Requests huge pages for untouched memory. Only a hint.
///
/// # Safety
/// The caller owns the range.
pub(crate) unsafe fn prefer_huge_pages(start: *mut u8, bytes: usize) {
    let first = start.align_offset(HUGE_PAGE_BYTES).min(bytes);
    let whole = (bytes - first) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if cfg!(miri) || whole == 0 {
        return;
    }
    let at = NonNull::new(start.wrapping_add(first)).expect("not at 0");
    // SAFETY: whole pages inside the caller's memory; the advice does not change their contents.
    let _ = unsafe { System.advise_huge(at, whole, true) };
}

/// Faults in the whole pages of the range on several threads. Only affects speed: pages the kernel cannot
/// fault in here are faulted in when they are written.
///
/// # Safety
/// The caller owns the range, and it is writable.
pub(crate) unsafe fn prefault(start: *mut u8, bytes: usize) {
    let first = start.align_offset(page_bytes()).min(bytes);
    let whole = (bytes - first) / page_bytes() * page_bytes();
    if whole == 0 {
        return;
    }
    // Atomic only to share the pointer with other threads.
    let (base, next) = (
        AtomicPtr::new(start.wrapping_add(first)),
        AtomicUsize::new(0),
    );
    // Pieces end at huge page boundaries, so one thread faults in each huge page.
    let skew = start.wrapping_add(first).addr() % PIECE_BYTES;
    let pieces = (skew + whole).div_ceil(PIECE_BYTES);
    helper_threads::run(
        helper_threads::helpers_at_most().min(pieces - 1),
        &|ticket| {
            while ticket.is_valid() {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return;
                }
                let from = (piece * PIECE_BYTES).saturating_sub(skew);
                let to = ((piece + 1) * PIECE_BYTES - skew).min(whole);
                let at = base.load(Ordering::Relaxed).wrapping_add(from);
                let at = NonNull::new(at).expect("not at 0");
                // SAFETY: whole pages inside the caller's memory.
                let _ = unsafe { System.populate(at, to - from) };
            }
        },
    );
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_told_from_touched_memory() {
        let bytes = 32 << 20;
        let mut map = memmap2::MmapMut::map_anon(bytes).unwrap();
        assert!(is_fresh(map.as_mut_ptr(), bytes));
        // SAFETY: the map is ours and writable.
        unsafe { prefault(map.as_mut_ptr().wrapping_add(100), bytes - 5000) };
        assert!(!is_fresh(map.as_mut_ptr(), bytes));
        assert!(map.iter().all(|&byte| byte == 0));
    }
}
