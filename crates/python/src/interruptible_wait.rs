//! Waits that Ctrl-C ends.

use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::OrRaise;

/// How often a wait looks for signals.
pub(crate) const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// Calls `wait_at_most` until it returns a value. In between, the handlers of signals run; an exception of theirs,
/// such as `KeyboardInterrupt`, ends the wait.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    mut wait_at_most: impl FnMut(Duration) -> pinlane::Result<Option<T>> + Send,
) -> PyResult<T> {
    loop {
        let waited = py.detach(|| wait_at_most(BETWEEN_CHECKS)).or_raise()?;
        py.check_signals()?;
        if let Some(value) = waited {
            return Ok(value);
        }
    }
}
