//! Ctrl-C, polled between steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status after a second Ctrl-C, as shells report it.
const KILLED: i32 = 130;

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
}
