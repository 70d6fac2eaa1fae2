//! Forked children. They have no thread of their parent's, and no memory that a driver page-locked there.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often this process, or one that it was forked from, was forked since [`Process::current`] was first called.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    forks: u64,
}

impl Process {
    /// The process that calls.
    pub(crate) fn current() -> Self {
        watch();
        Self {
            forks: FORKS.load(Ordering::Relaxed),
        }
    }

    /// Whether the caller is a child that was forked from it.
    pub(crate) fn is_parent(self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }
}

fn watch() {
    extern "C" fn note_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        if !cfg!(miri) {
            // SAFETY: the handler only changes an atomic, which is allowed after a fork.
            unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
        }
    });
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows_what_its_parent_made_from_what_it_made_itself() {
        let before = Process::current();
        // SAFETY: the child reads and writes atomics, and exits.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                let is_right = before.is_parent() && !Process::current().is_parent();
                libc::_exit(if is_right { 7 } else { 1 });
            }
            child
        };
        let mut status = 0;
        // SAFETY: `status` outlives the call, and the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 7);
        assert!(!before.is_parent());
    }
}
