//! Wakes tasks on threads of its own.
//!
//! A waker may poll or drop its task at once, and with it transfers and devices. That calls the driver, which
//! is forbidden on the driver's callback thread. A waker may also block. One thread, the leader, wakes all
//! tasks in order. If it is stuck in a waker while other tasks are due, a standby thread becomes the leader,
//! and the old one exits when its waker returns. The standby is started when it is first needed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::signal_mask::without_signals;
use crate::sync::lock;

/// How long other tasks wait for one waker. Ordinary wakers take microseconds.
const STUCK_AFTER: Duration = Duration::from_millis(10);

static THREADS: WakeThreads = WakeThreads {
    queue: Mutex::new(Queue {
        due: VecDeque::new(),
        taken: 0,
        has_leader: false,
        in_waker: false,
        standby: Standby::Missing,
    }),
    for_leader: Condvar::new(),
    for_standby: Condvar::new(),
};

struct WakeThreads {
    queue: Mutex<Queue>,
    for_leader: Condvar,
    for_standby: Condvar,
}

struct Queue {
    due: VecDeque<Waker>,
    /// Wakers taken out so far, by which the others see whether the leader makes progress.
    taken: u64,
    has_leader: bool,
    /// Whether the leader is inside a waker.
    in_waker: bool,
    standby: Standby,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standby {
    Missing,
    Asleep,
    /// Checks now and then whether the leader makes progress.
    Watching,
}

/// Wakes a task on another thread.
pub(crate) fn wake_elsewhere(waker: Waker) {
    THREADS.wake(waker);
}

impl Queue {
    /// Whether tasks wait for a waker that is running.
    fn is_behind(&self) -> bool {
        self.in_waker && !self.due.is_empty()
    }
}

impl WakeThreads {
    fn wake(&'static self, waker: Waker) {
        let mut queue = lock(&self.queue);
        if !queue.has_leader {
            queue.has_leader = start(|| self.lead(lock(&self.queue)));
        }
        if !queue.has_leader {
            drop(queue);
            // No thread could be started: waking here is better than never.
            return call(waker);
        }
        queue.due.push_back(waker);
        self.for_leader.notify_one();
        self.alert_standby(&mut queue);
    }

    /// Makes sure that a thread watches the leader while tasks are behind.
    fn alert_standby(&'static self, queue: &mut Queue) {
        if !queue.is_behind() {
            return;
        }
        match queue.standby {
            Standby::Watching => {}
            Standby::Asleep => {
                queue.standby = Standby::Watching;
                self.for_standby.notify_one();
            }
            Standby::Missing => {
                if start(|| self.stand_by()) {
                    queue.standby = Standby::Watching;
                }
            }
        }
    }

    /// Wakes tasks until another thread has taken over.
    fn lead(&'static self, mut queue: MutexGuard<'static, Queue>) {
        loop {
            let Some(waker) = queue.due.pop_front() else {
                queue = unpoisoned(self.for_leader.wait(queue));
                continue;
            };
            queue.taken += 1;
            queue.in_waker = true;
            let number = queue.taken;
            self.alert_standby(&mut queue);
            drop(queue);
            call(waker);
            queue = lock(&self.queue);
            if queue.taken != number {
                return; // the new leader has taken the next one
            }
            queue.in_waker = false;
        }
    }

    /// Watches the leader, and takes over when it is stuck.
    fn stand_by(&'static self) {
        let mut queue = lock(&self.queue);
        loop {
            if !queue.is_behind() {
                queue.standby = Standby::Asleep;
                queue = unpoisoned(self.for_standby.wait(queue));
                continue;
            }
            let taken = queue.taken;
            let stands_still = |queue: &mut Queue| queue.taken == taken;
            let watched = self
                .for_standby
                .wait_timeout_while(queue, STUCK_AFTER, stands_still);
            queue = unpoisoned(watched).0;
            if queue.is_behind() && queue.taken == taken {
                queue.standby = Standby::Missing;
                return self.lead(queue);
            }
        }
    }
}

/// Starts a thread. Returns whether that worked.
fn start(work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name("pinlane-wake".into());
    without_signals(|| thread.spawn(work)).is_ok()
}

/// Wakes a task and ignores the waker's panic, which the panic hook has reported.
fn call(waker: Waker) {
    let woken = std::panic::catch_unwind(move || waker.wake());
    woken.unwrap_or_else(std::mem::forget); // dropping the payload might panic again
}

fn unpoisoned<T>(waited: Result<T, PoisonError<T>>) -> T {
    waited.unwrap_or_else(PoisonError::into_inner)
}
