//! Wakes those who wait, and costs next to nothing when nobody does.

use crate::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rung whenever something comes free.
#[derive(Default)]
pub(super) struct Notifier {
    listeners: AtomicUsize,
    rings: Mutex<u64>,
    rung: Condvar,
}

/// Hears every ring from its making on, also those before it waits.
pub(super) struct Listener<'a> {
    notifier: &'a Notifier,
    rings: u64,
}

impl Notifier {
    /// Listen, *before* looking whether there is something.
    pub(super) fn listen(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        Listener {
            notifier: self,
            rings: *self.rings(),
        }
    }

    /// Ring, *after* something was put where a listener looks under a lock. That lock is why a
    /// plain look at the number of listeners is enough: whoever looked too early for what was put
    /// there held the lock before, and had been counted.
    pub(super) fn ring(&self) {
        if self.listeners.load(Ordering::SeqCst) > 0 {
            *self.rings() += 1;
            self.rung.notify_all();
        }
    }

    fn rings(&self) -> MutexGuard<'_, u64> {
        lock(&self.rings)
    }
}

impl Listener<'_> {
    /// Wait for a ring since `listen`. Whether there was one in time.
    pub(super) fn wait(self, timeout: Duration) -> bool {
        let not_rung = |rings: &mut u64| *rings == self.rings;
        let waited =
            self.notifier
                .rung
                .wait_timeout_while(self.notifier.rings(), timeout, not_rung);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.notifier.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that is broken fails rather than hangs.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_ring_between_listening_and_waiting_is_heard() {
        let notifier = Notifier::default();
        let listener = notifier.listen();
        notifier.ring();
        assert!(listener.wait(PATIENCE));
        assert!(!notifier.listen().wait(Duration::ZERO), "that one is over");
    }

    #[test]
    fn a_ring_that_nobody_listens_to_is_not_kept() {
        let notifier = Notifier::default();
        notifier.ring();
        assert_eq!(*notifier.rings(), 0);
        drop(notifier.listen());
        notifier.ring();
        assert_eq!(*notifier.rings(), 0);
    }

    #[test]
    fn one_who_waits_is_woken() {
        let notifier = Notifier::default();
        std::thread::scope(|scope| {
            let listener = notifier.listen();
            let waiting = scope.spawn(move || listener.wait(PATIENCE));
            notifier.ring();
            assert!(waiting.join().unwrap());
        });
    }
}
