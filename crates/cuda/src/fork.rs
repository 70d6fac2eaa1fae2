//! Detects a forked child process, where CUDA hangs or fails in odd ways.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_driver::{Error, ErrorKind, Result};

static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn mark_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Starts detecting forks. Called before CUDA is initialised: a process that forks earlier may use
/// CUDA in the child.
pub(crate) fn watch() -> Result<()> {
    static WATCHED: OnceLock<i32> = OnceLock::new();
    let status = *WATCHED.get_or_init(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(mark_child)) }
    });
    match status {
        0 => Ok(()),
        _ => Err(Error::new(ErrorKind::OutOfMemory, "pthread_atfork")),
    }
}

/// Whether this is a child of the process that loaded CUDA.
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Refuses `call` in a forked child.
pub(crate) fn check(call: &'static str) -> Result<()> {
    if is_child() {
        return Err(Error::new(ErrorKind::Forked, call));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_child_is_refused() {
        watch().expect("the handler is installed");
        // SAFETY: the child only reads an atomic and leaves at once.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                let refused =
                    matches!(check("cuInit"), Err(error) if error.kind == ErrorKind::Forked);
                libc::_exit(if refused { 7 } else { 1 });
            }
            child
        };
        assert!(child > 0, "fork failed");
        let mut status = 0;
        // SAFETY: `status` outlives the call, and the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 7);
        check("cuInit").expect("the parent is not refused");
    }
}
