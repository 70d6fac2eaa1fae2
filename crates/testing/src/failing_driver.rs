//! A driver that records its calls, and fails or panics in a chosen one.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinlane::driver::{Call, Error, ErrorKind, Hook, Intercepted, Result};
use pinlane::sim::Sim;
use pinlane::{Budget, Device};

/// What a trap does when it springs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spring {
    /// The call fails.
    Fail,
    /// The call panics.
    Panic,
}

/// Which call of which kind fails or panics, and what was called since.
#[derive(Clone)]
pub struct Trap {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    armed: bool,
    set: Option<(Call, u64, Spring)>,
    sprung: u64,
    calls: Vec<Call>,
}

/// The error of a trap.
pub const INJECTED: ErrorKind = ErrorKind::Other { code: 4242 };

impl Trap {
    /// A device of `sim` with a trap in its driver, which lets all calls through as yet. It has a
    /// budget of its own, in which tests beside it do not count.
    pub fn under(sim: &Sim) -> (Device, Self) {
        let trap = Self {
            state: Arc::default(),
        };
        let driver = Intercepted::new(sim.driver(), trap.clone());
        let budget = Budget::with_limit(u64::MAX);
        let device = Device::with_budget(Arc::new(driver), &budget);
        device.keep_pinned_memory(0); // so that the simulator sees what is freed too early
        (device, trap)
    }

    /// From now on note all calls.
    pub fn watch(&self) {
        let mut state = self.lock();
        state.armed = true;
        state.calls.clear();
    }

    /// From now on note all calls; number `at` of this kind, from 0, springs.
    pub fn set(&self, call: Call, at: u64, spring: Spring) {
        self.lock().set = Some((call, at, spring));
        self.watch();
    }

    /// From now on every call of this kind fails.
    pub fn refuse_all(&self, call: Call) {
        self.set(call, u64::MAX, Spring::Fail);
    }

    /// From now on let everything through. How often it sprang.
    pub fn disarm(&self) -> u64 {
        let mut state = self.lock();
        state.armed = false;
        state.set = None;
        mem::take(&mut state.sprung)
    }

    /// Calls since it was set.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It springs with the lock held, which leaves the state intact.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for Trap {
    fn before(&self, call: Call) -> Result<()> {
        let mut state = self.lock();
        if !state.armed {
            return Ok(());
        }
        let before = state
            .calls
            .iter()
            .filter(|&&earlier| earlier == call)
            .count() as u64;
        state.calls.push(call);
        match state.set {
            Some((trapped, at, spring)) if trapped == call && (at == before || at == u64::MAX) => {
                state.sprung += 1;
                assert!(spring == Spring::Fail, "on purpose");
                Err(Error::new(INJECTED, "trap").with_detail(format!("{call:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// Whether it is the error of a trap.
pub fn is_injected(error: &pinlane::Error) -> bool {
    matches!(error, pinlane::Error::Driver(error) if error.kind == INJECTED)
}
