//! Faulting a mapping's pages in, on several threads.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use super::pages::Errno;
use super::pages::Mapping;
use crate::helpers;

/// What one thread takes at a time: two huge pages. Small enough that 16 MiB keep four threads
/// busy, large enough that taking costs nothing beside it.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// A piece of huge pages that takes longer is slow: less than 0.25 GB a second on one thread,
/// where 4 KiB pages give 1 GB a second and more, and huge pages on a healthy machine four. On a
/// fragmented one the kernel moves pages about to make room for each of them.
pub(super) const SLOW_PIECE_NS: u64 = PIECE_BYTES as u64 * 4;

/// As many slow pieces end the use of huge pages. One may be a thread that had to wait for a CPU.
pub(super) const SLOW_PIECES_MAX: u32 = 2;

/// What the threads share.
struct FaultIn<'a> {
    mapping: &'a Mapping,
    /// Number of the next piece that nobody has taken.
    next: AtomicUsize,
    slow_pieces: AtomicU32,
    /// Huge pages were asked for.
    huge: bool,
    /// The kernel does not know `populate`.
    touch: AtomicBool,
    /// What went wrong, if anything did; 0 is no error.
    failed: AtomicI32,
}

/// Fault all pages in. Contents are zero. Huge pages where the system has them and gives them
/// fast; in one call a piece where the kernel knows that call.
pub(super) fn fill(mapping: &Mapping) -> Result<(), Errno> {
    let pages = mapping.pages();
    // SAFETY: the range is the mapping.
    let advised = pages.have_huge()
        && unsafe { pages.advise_huge(mapping.start(), mapping.bytes(), true) }.is_ok();
    let fault_in = FaultIn {
        mapping,
        next: AtomicUsize::new(0),
        slow_pieces: AtomicU32::new(0),
        huge: advised,
        touch: AtomicBool::new(false),
        failed: AtomicI32::new(0),
    };
    let pieces = mapping.bytes().div_ceil(PIECE_BYTES);
    let helpers = helpers::helpers_at_most().min(pieces - 1);
    helpers::run(helpers, &|_| fault_in.work());
    match fault_in.failed.into_inner() {
        0 => Ok(()),
        code => Err(Errno(code)),
    }
}

impl FaultIn<'_> {
    /// Takes pieces until there are none, or one failed.
    fn work(&self) {
        while self.failed.load(Ordering::Relaxed) == 0 {
            let start = self.next.fetch_add(1, Ordering::Relaxed) * PIECE_BYTES;
            if start >= self.mapping.bytes() {
                return;
            }
            let bytes = PIECE_BYTES.min(self.mapping.bytes() - start);
            if let Err(Errno(code)) = self.piece(start, bytes) {
                self.failed.store(code, Ordering::Relaxed);
            }
        }
    }

    fn piece(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let pages = self.mapping.pages();
        // SAFETY: `at` is inside of the mapping.
        let start = unsafe { self.mapping.start().add(at) };
        let huge = self.huge && self.slow_pieces.load(Ordering::Relaxed) < SLOW_PIECES_MAX;
        if self.huge && !huge {
            // Where this is refused huge pages it is, slow or not.
            // SAFETY: the range is a piece of the mapping.
            let _ = unsafe { pages.advise_huge(start, bytes, false) };
        }
        let began_ns = pages.now_ns();
        self.fault_in(at, bytes)?;
        let took_ns = pages.now_ns().saturating_sub(began_ns);
        let slow_ns = SLOW_PIECE_NS as u128 * bytes as u128 / PIECE_BYTES as u128;
        if huge && u128::from(took_ns) > slow_ns {
            self.slow_pieces.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn fault_in(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let pages = self.mapping.pages();
        // SAFETY: `at` is inside of the mapping.
        let start = unsafe { self.mapping.start().add(at) };
        if !self.touch.load(Ordering::Relaxed) {
            // SAFETY: the range is a piece of the mapping.
            match unsafe { pages.populate(start, bytes) } {
                // Linux before 5.14.
                Err(Errno(libc::EINVAL)) => self.touch.store(true, Ordering::Relaxed),
                result => return result,
            }
        }
        // SAFETY: as above, and each piece is taken by one thread.
        unsafe { pages.touch(start, bytes) };
        Ok(())
    }
}
