//! Whether something happens in quick succession.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::guard;

/// Longer apart, waking lanes for the next copy would only burn their time.
const APART: Duration = Duration::from_millis(1);

/// Remembers the last time.
#[derive(Default)]
pub(crate) struct Bursts {
    last: Mutex<Option<Instant>>,
}

impl Bursts {
    /// It happens now. Whether it did so only just before, too.
    pub(crate) fn again(&self) -> bool {
        let now = Instant::now();
        let last = guard(&self.last).replace(now);
        last.is_some_and(|last| now.duration_since(last) < APART)
    }
}
