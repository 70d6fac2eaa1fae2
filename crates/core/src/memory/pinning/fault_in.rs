//! Faults in the pages of a mapping on several threads.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use super::page_syscalls::{Errno, Mapping};
use crate::helper_threads;

/// How much one thread takes at a time: two huge pages. Small enough that 16 MiB keep four threads busy,
/// large enough that the cost of taking a piece is negligible.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// A piece of huge pages that takes longer is slow: less than 0.25 GB/s on one thread. 4 KiB pages reach 1
/// GB/s and more, huge pages on a healthy machine 4 GB/s. On a fragmented machine the kernel compacts
/// memory for each huge page.
pub(super) const SLOW_PIECE_NS: u64 = PIECE_BYTES as u64 * 4;

/// Number of slow pieces after which huge pages are given up. One may be a thread without a CPU.
pub(super) const SLOW_PIECES_MAX: u32 = 2;

/// State shared by the threads.
struct FaultIn<'a> {
    mapping: &'a Mapping,
    /// Index of the next piece to take.
    next: AtomicUsize,
    slow_pieces: AtomicU32,
    /// Whether huge pages were requested.
    huge: bool,
    /// The kernel does not support `populate`.
    touch: AtomicBool,
    /// Error number of a failed piece; 0 if none.
    failed: AtomicI32,
}

/// Faults in all pages, zeroed. Uses huge pages if the system has them and provides them quickly, and one
/// call per piece if the kernel supports it.
pub(super) fn fill(mapping: &Mapping) -> Result<(), Errno> {
    let &Mapping {
        pages,
        start,
        bytes,
    } = mapping;
    // SAFETY: the range is the mapping.
    let advised = pages.have_huge() && unsafe { pages.advise_huge(start, bytes, true) }.is_ok();
    let fault_in = FaultIn {
        mapping,
        next: AtomicUsize::new(0),
        slow_pieces: AtomicU32::new(0),
        huge: advised,
        touch: AtomicBool::new(false),
        failed: AtomicI32::new(0),
    };
    let helpers = helper_threads::helpers_at_most().min(bytes.div_ceil(PIECE_BYTES) - 1);
    helper_threads::run(helpers, &|_| fault_in.work());
    match fault_in.failed.into_inner() {
        0 => Ok(()),
        code => Err(Errno(code)),
    }
}

impl FaultIn<'_> {
    /// Takes pieces until none are left or one has failed.
    fn work(&self) {
        while self.failed.load(Ordering::Relaxed) == 0 {
            let start = self.next.fetch_add(1, Ordering::Relaxed) * PIECE_BYTES;
            if start >= self.mapping.bytes {
                return;
            }
            let bytes = PIECE_BYTES.min(self.mapping.bytes - start);
            if let Err(Errno(code)) = self.piece(start, bytes) {
                self.failed.store(code, Ordering::Relaxed);
            }
        }
    }

    fn piece(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let pages = self.mapping.pages;
        // SAFETY: `at` is inside the mapping.
        let start = unsafe { self.mapping.start.add(at) };
        let huge = self.huge && self.slow_pieces.load(Ordering::Relaxed) < SLOW_PIECES_MAX;
        if self.huge && !huge {
            // If the kernel refuses, the piece keeps its huge pages, slow or not.
            // SAFETY: the range is a piece of the mapping.
            let _ = unsafe { pages.advise_huge(start, bytes, false) };
        }
        let began_ns = pages.now_ns();
        let mut touch = self.touch.load(Ordering::Relaxed);
        if !touch {
            // SAFETY: the range is a piece of the mapping.
            match unsafe { pages.populate(start, bytes) } {
                // Linux before 5.14.
                Err(Errno(libc::EINVAL)) => touch = true,
                result => result?,
            }
        }
        if touch {
            self.touch.store(true, Ordering::Relaxed);
            // SAFETY: as above, and only one thread takes each piece.
            unsafe { pages.touch(start, bytes) };
        }
        let took_ns = pages.now_ns().saturating_sub(began_ns);
        let slow_ns = SLOW_PIECE_NS as u128 * bytes as u128 / PIECE_BYTES as u128;
        if huge && u128::from(took_ns) > slow_ns {
            self.slow_pieces.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
