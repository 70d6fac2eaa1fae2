//! Ctrl-C, polled between steps.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Exit status after a second Ctrl-C, as shells report it.
const KILLED: i32 = 130;

/// How often a thread is checked.
const POLL: Duration = Duration::from_millis(50);

/// Checks after an interrupt until a thread is left behind.
const POLLS_MAX: u32 = 4;

/// Whether the user asked to stop. The first Ctrl-C sets it; the second ends the process.
#[derive(Clone)]
pub(crate) struct Interrupt(pub(crate) Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown handler must see the flag as it was before this signal.
            flag::register_conditional_shutdown(signal, KILLED, Arc::clone(&raised))
                .and_then(|_| flag::register(signal, Arc::clone(&raised)))
                .context("cannot install signal handlers")?;
        }
        Ok(Self(raised))
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// Runs `work` on a thread of its own and returns its result. After an interrupt `work` has a moment to
    /// end; then returns `None` and leaves it running. End the process with [`exit`](Self::exit) in that case.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (running, ended) = mpsc::channel::<()>();
        let worker = thread::spawn(move || {
            let _running = running;
            work()
        });
        let mut polls = 0;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(POLL) {
            polls += u32::from(self.is_raised());
            if polls > POLLS_MAX {
                return None;
            }
        }
        Some(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Ends the process at once, with the exit status of an interrupted job. Exit handlers of the driver
    /// would wait for its running call.
    pub(crate) fn exit() -> ! {
        low_level::exit(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupt(raised: bool) -> Interrupt {
        Interrupt(Arc::new(AtomicBool::new(raised)))
    }

    #[test]
    fn a_thread_that_ends_returns_its_result() {
        for raised in [false, true] {
            assert_eq!(interrupt(raised).run(|| 7), Some(7));
        }
    }

    #[test]
    fn an_interrupt_does_not_wait_for_a_thread_that_does_not_end() {
        let (keep, wait) = mpsc::channel::<()>();
        assert_eq!(interrupt(true).run(move || wait.recv()), None);
        drop(keep);
    }
}
