//! A driver that records its calls, and fails or panics in a chosen one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    inner: Arc<Inner>,
}

struct Inner {
    armed: AtomicBool,
    set: Mutex<Option<(Call, u64, Spring)>>,
    sprung: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

/// The error of a trap.
pub const INJECTED: ErrorKind = ErrorKind::Other { code: 4242 };

impl Trap {
    /// A device of `sim` with a trap in its driver, which lets all calls through as yet. It has a
    /// budget of its own, in which tests beside it do not count.
    pub fn under(sim: &Sim) -> (Device, Self) {
        let trap = Self {
            inner: Arc::new(Inner {
                armed: AtomicBool::new(false),
                set: Mutex::new(None),
                sprung: AtomicU64::new(0),
                calls: Mutex::default(),
            }),
        };
        let driver = Intercepted::new(sim.driver(), trap.clone());
        let budget = Budget::with_limit(u64::MAX);
        (Device::with_budget(Arc::new(driver), &budget), trap)
    }

    /// From now on note all calls.
    pub fn watch(&self) {
        self.inner.armed.store(true, Ordering::SeqCst);
        self.lock_calls().clear();
    }

    /// From now on note all calls; number `at` of this kind, from 0, springs.
    pub fn set(&self, call: Call, at: u64, spring: Spring) {
        *self.lock_set() = Some((call, at, spring));
        self.watch();
    }

    /// From now on every call of this kind fails.
    pub fn refuse_all(&self, call: Call) {
        self.set(call, u64::MAX, Spring::Fail);
    }

    /// From now on let everything through. How often it sprang.
    pub fn disarm(&self) -> u64 {
        self.inner.armed.store(false, Ordering::SeqCst);
        *self.lock_set() = None;
        self.inner.sprung.swap(0, Ordering::SeqCst)
    }

    /// Calls since it was set.
    pub fn calls(&self) -> Vec<Call> {
        self.lock_calls().clone()
    }

    fn lock_calls(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        let calls = self.inner.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_set(&self) -> std::sync::MutexGuard<'_, Option<(Call, u64, Spring)>> {
        let set = self.inner.set.lock();
        set.unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for Trap {
    fn before(&self, call: Call) -> Result<()> {
        if !self.inner.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let before = {
            let mut calls = self.lock_calls();
            calls.push(call);
            calls.iter().filter(|&&earlier| earlier == call).count() as u64 - 1
        };
        let set = *self.lock_set();
        match set {
            Some((trapped, at, spring)) if trapped == call && (at == before || at == u64::MAX) => {
                self.inner.sprung.fetch_add(1, Ordering::SeqCst);
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
