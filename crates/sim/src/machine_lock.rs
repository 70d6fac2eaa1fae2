//! The machine: a lock over its state, and how calls enter, block and return.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinlane_driver::{Call, DeviceInfo, ErrorKind, Result};

use crate::builder::Config;
use crate::state::State;
use crate::stream::StreamPoint;

/// A simulated machine, shared by the handles of its devices.
pub(crate) struct Machine {
    state: Mutex<State>,
    /// Notified when something happens that a blocked thread may wait for.
    changed: Condvar,
    pub(crate) infos: Vec<DeviceInfo>,
    /// Unique in the process.
    pub(crate) pin_domain: u64,
}

/// How long the end of a run waits for a callback, in real time.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(2);

/// CUDA uses 0.
static NEXT_PIN_DOMAIN: AtomicU64 = AtomicU64::new(1);

impl Machine {
    pub(crate) fn new(config: Config) -> Self {
        let infos = (0..config.devices)
            .map(|ordinal| config.info(ordinal))
            .collect();
        Self {
            state: Mutex::new(State::new(Arc::new(config))),
            changed: Condvar::new(),
            infos,
            pin_domain: NEXT_PIN_DOMAIN.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Locks the state for the calling thread. A panic leaves it consistent.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.threads.identify();
        let now_ns = state.now_ns;
        state.threads.show_life(now_ns);
        state
    }

    /// The end of every call.
    pub(crate) fn leave<T>(&self, mut state: MutexGuard<'_, State>, result: &Result<T>) {
        state.trace.outcome(result);
        if state.config.idle_progress {
            state.callbacks.wake_worker();
        }
        self.wake_sleepers(&state);
    }

    /// Wakes the threads that wait for a change.
    pub(crate) fn wake_sleepers(&self, state: &State) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Lets virtual time pass until the points are passed, or for `timeout_ns`, unless that is
    /// `u64::MAX`. Returns whether they are passed.
    pub(crate) fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        device: usize,
        call: Call,
        points: &[StreamPoint],
        timeout_ns: u64,
    ) -> (MutexGuard<'a, State>, Result<bool>) {
        let limit_ns = match timeout_ns {
            u64::MAX => u64::MAX,
            _ => state
                .clock_ns()
                .saturating_add(timeout_ns)
                .min(u64::MAX - 1),
        };
        if state.threads.current().is_some() {
            return self.wait_with_others(state, device, call, points, limit_ns);
        }
        let mut waited = false;
        loop {
            state.catch_up();
            if let Err(error) = state.alive(device, call) {
                // Callbacks of a lost device are called with the error, even if time does not pass.
                state.callbacks.wake_worker();
                return (state, Err(error));
            }
            if points.iter().all(|&point| state.passed(point)) {
                if waited {
                    let now_ns = state.now_ns;
                    let awake_ns = now_ns.saturating_add(state.config.profile.calls.wake_ns);
                    state.now_ns = awake_ns.min(limit_ns.max(now_ns));
                }
                return (state, Ok(true));
            }
            waited = true;
            let mut stepped = false;
            if !state.held || limit_ns == u64::MAX {
                (state, stepped) = self.progress(state, limit_ns);
            }
            if !stepped {
                // Another thread may have advanced the clock further.
                state.now_ns = state.now_ns.max(limit_ns);
                return (state, Ok(false));
            }
        }
    }

    /// Waits for a completion, the return of a callback or the end of a hold. Returns false if
    /// nothing happens before `limit_ns`.
    pub(crate) fn progress<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit_ns: u64,
    ) -> (MutexGuard<'a, State>, bool) {
        // If time passes on demand only, callbacks return first, so that runs replay exactly.
        let callbacks_first = !state.config.idle_progress && state.callbacks.outstanding();
        if !state.held && !callbacks_first && state.step_until(limit_ns) {
            self.wake_sleepers(&state);
            return (state, true);
        }
        if state.held || state.callbacks.outstanding() {
            if !state.held {
                state.callbacks.wake_worker();
            }
            // A callback takes real time. One that never returns must not block a wait with a
            // timeout.
            let patience = match limit_ns {
                u64::MAX => Duration::MAX,
                _ => Duration::from_nanos(limit_ns.saturating_sub(state.now_ns)),
            };
            return self.sleep(state, patience);
        }
        assert!(limit_ns < u64::MAX, "work is queued and nothing can run");
        (state, false)
    }

    /// Blocks until something changes, or this long. Returns whether something did.
    pub(crate) fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
        state.sleepers += 1;
        let slept = self.changed.wait_timeout(state, patience);
        let (mut state, slept) = slept.unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state.threads.identify();
        (state, !slept.timed_out())
    }

    /// Advances to the next event, or until all queued callbacks have returned. Returns false if
    /// nothing is outstanding, or a callback takes longer than `patience` of real time.
    pub(crate) fn step(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        if !state.callbacks.outstanding() || state.held {
            let stepped = state.step();
            self.wake_sleepers(&state);
            return stepped;
        }
        while state.callbacks.outstanding() {
            state.callbacks.wake_worker();
            let changed;
            (state, changed) = self.sleep(state, patience);
            if !changed {
                return false;
            }
        }
        true
    }

    /// Ends a hold and completes all outstanding work, except behind a callback that never returns.
    pub(crate) fn run_out(&self) {
        self.release();
        while self.step(CALLBACK_PATIENCE) {}
    }

    /// Ends [`State::hold`].
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.release();
        if state.config.idle_progress {
            state.callbacks.wake_worker();
        }
        self.wake_sleepers(&state);
    }
}

impl Drop for Machine {
    /// Remaining callbacks are called with an error.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for device in 0..state.devices.len() {
            let detail = "the simulated machine was dropped".to_owned();
            state.kill(device, ErrorKind::DeviceLost, detail);
        }
        state.callbacks.close();
    }
}
