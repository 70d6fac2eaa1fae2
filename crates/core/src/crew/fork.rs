//! Forked children: they have no crew.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had a crew: its threads are not here.
pub(super) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Notice it in a child. Crews call it before they have threads.
pub(super) fn watch_for_forks() {
    extern "C" fn note_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(miri) {
            return;
        }
        // SAFETY: the handler only stores to an atomic, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}
