//! Whether this process is a forked child. It has no thread of its parent's, and no memory that a driver
//! page-locked there.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked since [`watch`] was first called.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Makes [`is_forked`] work. Called before anything exists that a child must not use.
pub(crate) fn watch() {
    extern "C" fn note_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        if !cfg!(miri) {
            // SAFETY: the handler only stores to an atomic, which is allowed after a fork.
            unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
        }
    });
}
