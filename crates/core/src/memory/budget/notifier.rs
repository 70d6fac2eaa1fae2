//! Wakes waiting threads; nearly free if none wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sync::lock;

/// Notified whenever something is released.
#[derive(Default)]
pub(super) struct Notifier {
    listeners: AtomicUsize,
    rings: Mutex<u64>,
    rung: Condvar,
}

/// Receives every notification since its creation, including those before it waits.
pub(super) struct Listener<'a> {
    notifier: &'a Notifier,
    rings: u64,
}

impl Notifier {
    /// Starts listening. Call this *before* checking the condition.
    pub(super) fn listen(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        Listener {
            notifier: self,
            rings: *self.rings(),
        }
    }

    /// Notifies listeners. Call this *after* publishing the change under the lock that listeners check it
    /// under. That lock is why a plain load of the listener count is enough: a listener that checked too
    /// early to see the change held the lock earlier, and was already counted.
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
    /// Waits for a notification since `listen`. Returns whether one arrived in time.
    pub(super) fn wait(self, timeout: Duration) -> bool {
        let not_rung = |rings: &mut u64| *rings == self.rings;
        let Notifier { rung, .. } = self.notifier;
        let waited = rung.wait_timeout_while(self.notifier.rings(), timeout, not_rung);
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

    /// Makes a broken test fail instead of hang.
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
