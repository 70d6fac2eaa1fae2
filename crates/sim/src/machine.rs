//! The machine: one lock over its state, and how calls enter, wait and leave.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinlane_driver::{Call, DeviceInfo, ErrorKind, Result};

use crate::builder::Config;
use crate::op::Point;
use crate::state::State;

/// A simulated machine, shared by the handles of its devices.
pub(crate) struct Machine {
    state: Mutex<State>,
    /// Something happened that a sleeping thread may wait for.
    changed: Condvar,
    pub(crate) infos: Vec<DeviceInfo>,
    /// A number that no other machine of this process has.
    pub(crate) pin_domain: u64,
}

/// How long the end of a run waits for a callback, in real time.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(2);

/// CUDA's is 0.
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

    /// The state. A thread that panicked left it as it was between two operations.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that does not wait.
    pub(crate) fn call<T>(
        &self,
        device: usize,
        call: Call,
        work: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        let result = state.enter(device, call).and_then(|()| work(&mut state));
        self.leave(state, &result);
        result
    }

    /// A call that gives something back: an unusable device does not stop it, so that its owner
    /// can tidy up.
    pub(crate) fn give_back(
        &self,
        device: usize,
        call: Call,
        work: impl FnOnce(&mut State) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        // Why the device is unusable is told by every other call.
        let _ = state.enter(device, call);
        let result = work(&mut state);
        self.leave(state, &result);
        result
    }

    /// A call that waits until the places that `work` gives are passed.
    pub(crate) fn call_and_wait(
        &self,
        device: usize,
        call: Call,
        work: impl FnOnce(&mut State) -> Result<Vec<Point>>,
    ) -> Result<()> {
        let mut state = self.lock();
        let mut result = state.enter(device, call);
        if result.is_ok() {
            match work(&mut state) {
                // A call that need not wait ends here: what it submitted is not done within it.
                Ok(points) if points.is_empty() => {}
                Ok(points) => {
                    let done;
                    (state, done) = self.wait(state, device, call, &points, None);
                    result = done.map(|_| ());
                }
                Err(error) => result = Err(error),
            }
        }
        self.leave(state, &result);
        result
    }

    /// A call that waits until the place that `work` gives is passed, or a time has passed.
    pub(crate) fn call_and_wait_until(
        &self,
        device: usize,
        call: Call,
        timeout_ns: u64,
        work: impl FnOnce(&mut State) -> Result<Vec<Point>>,
    ) -> Result<bool> {
        let mut state = self.lock();
        let points = state.enter(device, call).and_then(|()| work(&mut state));
        let result = match points {
            Ok(points) => {
                let deadline_ns = state.now_ns.saturating_add(timeout_ns);
                let done;
                (state, done) = self.wait(state, device, call, &points, Some(deadline_ns));
                done
            }
            Err(error) => Err(error),
        };
        self.leave(state, &result);
        result
    }

    /// The end of every call.
    fn leave<T>(&self, mut state: MutexGuard<'_, State>, result: &Result<T>) {
        state.trace.outcome(result);
        if state.config.idle_progress {
            state.callbacks.nudge();
        }
        self.wake_sleepers(&state);
    }

    /// Wakes the threads that sleep until something changes.
    pub(crate) fn wake_sleepers(&self, state: &State) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Lets virtual time pass until the places are passed; whether they are, at the deadline.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        device: usize,
        call: Call,
        points: &[Point],
        deadline_ns: Option<u64>,
    ) -> (MutexGuard<'a, State>, Result<bool>) {
        let limit_ns = deadline_ns.unwrap_or(u64::MAX);
        let mut waited = false;
        loop {
            state.catch_up();
            if let Err(error) = state.alive(device, call) {
                // Callbacks of a dead device are called with the error, wherever time passes.
                state.callbacks.nudge();
                return (state, Err(error));
            }
            if points.iter().all(|&point| state.passed(point)) {
                if waited {
                    let wake_ns = state.config.profile.calls.wake_ns;
                    state.now_ns = state
                        .now_ns
                        .saturating_add(wake_ns)
                        .min(limit_ns.max(state.now_ns));
                }
                return (state, Ok(true));
            }
            waited = true;
            if deadline_ns.is_some() && state.held {
                // Another thread may have spent more meanwhile.
                state.now_ns = state.now_ns.max(limit_ns);
                return (state, Ok(false));
            }
            let stepped;
            (state, stepped) = self.progress(state, limit_ns);
            if !stepped {
                state.now_ns = state.now_ns.max(limit_ns);
                return (state, Ok(false));
            }
        }
    }

    /// Lets something happen: a completion, the return of a callback, the end of a hold. False if
    /// nothing does before `limit_ns`.
    fn progress<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit_ns: u64,
    ) -> (MutexGuard<'a, State>, bool) {
        // Where time passes only on demand, callbacks return before it goes on: runs replay.
        let callbacks_first = !state.config.idle_progress && state.callbacks.outstanding();
        if !state.held && !callbacks_first && state.step_until(limit_ns) {
            self.wake_sleepers(&state);
            return (state, true);
        }
        if state.held || state.callbacks.outstanding() {
            if !state.held {
                state.callbacks.nudge();
            }
            if limit_ns < u64::MAX {
                // A callback is code of the host's and takes real time, so the wait for it does too:
                // one that never returns must not hold a wait that has a limit.
                let left = Duration::from_nanos(limit_ns.saturating_sub(state.now_ns));
                return self.sleep_at_most(state, left);
            }
            return (self.sleep(state), true);
        }
        assert!(limit_ns < u64::MAX, "work is queued and nothing can run");
        (state, false)
    }

    /// Sleeps until something changes, at most this long; whether something did.
    fn sleep_at_most<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
        state.sleepers += 1;
        let (mut state, slept) = self
            .changed
            .wait_timeout(state, patience)
            .unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        (state, !slept.timed_out())
    }

    /// Sleeps until something changes.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.sleepers += 1;
        let mut state = self
            .changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// Lets the next thing happen, or all callbacks return that were handed out; false if there is
    /// nothing to wait for.
    pub(crate) fn step(&self) -> bool {
        self.step_within(None)
    }

    /// The same. A callback that does not return in this much real time counts as nothing.
    fn step_within(&self, patience: Option<Duration>) -> bool {
        let mut state = self.lock();
        if !state.callbacks.outstanding() || state.held {
            let stepped = state.step();
            self.wake_sleepers(&state);
            return stepped;
        }
        while state.callbacks.outstanding() {
            state.callbacks.nudge();
            let Some(patience) = patience else {
                state = self.sleep(state);
                continue;
            };
            let changed;
            (state, changed) = self.sleep_at_most(state, patience);
            if !changed {
                return false;
            }
        }
        true
    }

    /// Ends a hold, and lets all outstanding work complete, but for that behind a callback that
    /// never returns.
    pub(crate) fn run_out(&self) {
        self.release();
        while self.step_within(Some(CALLBACK_PATIENCE)) {}
    }

    /// Nothing completes until [`release`](Self::release).
    pub(crate) fn hold(&self) {
        self.lock().hold();
    }

    /// Ends [`hold`](Self::hold).
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.release();
        if state.config.idle_progress {
            state.callbacks.nudge();
        }
        self.wake_sleepers(&state);
    }
}

impl Drop for Machine {
    /// Callbacks that had no turn are called with an error.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for device in 0..state.devices.len() {
            let detail = "the simulated machine was dropped".to_owned();
            state.kill(device, ErrorKind::DeviceLost, detail);
        }
        state.callbacks.close();
    }
}
