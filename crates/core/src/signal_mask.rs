//! The signal mask of threads that the library starts.

use std::mem::MaybeUninit;
use std::ptr;

/// Blocks all signals while `start` runs, so that a thread it starts takes none. A program that waits for its signals on
/// one of its own threads would not get those that a thread of ours takes.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    if cfg!(miri) {
        return start();
    }
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first call fills in `all`, the second one `before`, if it succeeds.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = start();
    if is_blocked {
        // SAFETY: filled in above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    started
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    fn blocks_sigterm() -> bool {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: a query that fills in the mask.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), libc::SIGTERM) == 1
        }
    }

    #[test]
    fn only_the_new_thread_blocks_signals() {
        let before = blocks_sigterm();
        let thread = without_signals(|| std::thread::spawn(blocks_sigterm));
        assert!(thread.join().unwrap());
        assert_eq!(blocks_sigterm(), before);
    }
}
