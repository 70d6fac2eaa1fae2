//! Ctrl-C, asked for between steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Status of a process that a second Ctrl-C ended at once, as shells have it.
const KILLED: i32 = 130;

/// Whether the user wants an end. The first Ctrl-C sets it, the second ends the process.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listen from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first one only looks whether it was raised before.
            flag::register_conditional_shutdown(signal, KILLED, Arc::clone(&raised))
                .and_then(|_| flag::register(signal, Arc::clone(&raised)))
                .context("signals cannot be listened to")?;
        }
        Ok(Self(raised))
    }

    /// One that a test raises.
    #[cfg(test)]
    pub(crate) fn by_hand() -> (Self, Arc<AtomicBool>) {
        let raised = Arc::new(AtomicBool::new(false));
        (Self(Arc::clone(&raised)), raised)
    }

    /// Whether it came.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
