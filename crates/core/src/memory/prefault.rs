//! Faulting in memory of others before it is written.
//!
//! Writing to memory that nobody has touched is slow: the kernel finds, clears and maps each page on
//! the way. Several threads that write side by side fault the same huge page several times over, so
//! pages are better faulted in before, each by one thread.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::page_bytes;
use super::pinning::{HUGE_PAGE_BYTES, Pages, System};
use crate::helpers;

/// What one thread takes at a time.
const PIECE_BYTES: usize = 2 * HUGE_PAGE_BYTES;

/// Pages that are looked at to tell whether memory is fresh.
const SAMPLES: usize = 16;

/// Whether most of the memory has not been touched yet.
pub(crate) fn is_fresh(start: *mut u8, bytes: usize) -> bool {
    if cfg!(miri) || bytes < SAMPLES * page_bytes() {
        return false;
    }
    let fresh = (0..SAMPLES).filter(|sample| {
        let at = start.wrapping_add(bytes / SAMPLES * sample).addr();
        let page = start.with_addr(at / page_bytes() * page_bytes());
        let mut resident = 0u8;
        // SAFETY: only asks about the page; one byte is written for one page.
        let asked = unsafe { libc::mincore(page.cast(), page_bytes(), &raw mut resident) };
        asked == 0 && resident & 1 == 0
    });
    fresh.count() > SAMPLES / 2
}

/// Ask for huge pages in memory that was not touched yet. Only a hint: nothing depends on it.
///
/// # Safety
/// The range is memory of the caller's.
pub(crate) unsafe fn prefer_huge_pages(start: *mut u8, bytes: usize) {
    let first = start.align_offset(HUGE_PAGE_BYTES).min(bytes);
    let whole = (bytes - first) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if cfg!(miri) || whole == 0 {
        return;
    }
    let at = NonNull::new(start.wrapping_add(first)).expect("not at 0");
    // SAFETY: whole pages inside of the caller's memory; the advice changes no contents.
    let _ = unsafe { System.advise_huge(at, whole, true) };
}

/// Fault the pages in, on several threads. Only whole pages inside of the range, and only a matter
/// of speed: where the kernel cannot, writing does it.
///
/// # Safety
/// The range is writable memory of the caller's.
pub(crate) unsafe fn prefault(start: *mut u8, bytes: usize) {
    let first = start.align_offset(page_bytes()).min(bytes);
    let whole = (bytes - first) / page_bytes() * page_bytes();
    if whole == 0 {
        return;
    }
    let (base, next) = (Base(start.wrapping_add(first)), AtomicUsize::new(0));
    // Pieces end at huge pages, so that each of them is faulted in by one thread.
    let skew = base.get().addr() % PIECE_BYTES;
    let pieces = (skew + whole).div_ceil(PIECE_BYTES);
    helpers::run(helpers::helpers_at_most().min(pieces - 1), &|ticket| {
        while ticket.is_valid() {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return;
            }
            let from = (piece * PIECE_BYTES).saturating_sub(skew);
            let to = ((piece + 1) * PIECE_BYTES - skew).min(whole);
            let at = NonNull::new(base.get().wrapping_add(from)).expect("not at 0");
            // SAFETY: whole pages inside of the caller's memory.
            let _ = unsafe { System.populate(at, to - from) };
        }
    });
}

/// An address that threads may share.
#[derive(Clone, Copy)]
struct Base(*mut u8);

impl Base {
    fn get(self) -> *mut u8 {
        self.0
    }
}

// SAFETY: it is only an address; what may be done there is said by `prefault`.
unsafe impl Sync for Base {}

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
