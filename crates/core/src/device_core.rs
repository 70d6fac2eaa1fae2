//! Shared by all resources of a device: the driver, memory counters, and errors from drops.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pinlane_driver::{Driver, Error, Result};

use crate::fork::Process;
use crate::memory::{Budget, DeviceMemoryCache};
use crate::release_when_idle::IdleReleases;
use crate::sync::lock;

/// The lowest layer of an opened device. Nothing in it points back to it, so resources may own it; only what
/// waits for the device to be idle does, until then. The device's shutdown frees its cached memory.
pub(crate) struct DeviceCore {
    pub(crate) driver: Arc<dyn Driver>,
    /// Where the device was opened.
    pub(crate) process: Process,
    pub(crate) counters: MemoryCounters,
    pub(crate) budget: Budget,
    /// The driver permanently refuses to register memory.
    pub(crate) registration_refused: AtomicBool,
    pub(crate) device_cache: DeviceMemoryCache,
    /// What other libraries may still use.
    pub(crate) releases: IdleReleases,
    stray: Mutex<StrayErrors>,
}

/// Errors that no call could return.
#[derive(Default)]
struct StrayErrors {
    /// Those not taken yet, up to [`STRAY_ERRORS_AT_MOST`].
    kept: Vec<Error>,
    /// All of them, kept or not.
    count: u64,
}

/// The first errors say most about a cause, and a program that never takes them must not run out of memory.
const STRAY_ERRORS_AT_MOST: usize = 100;

/// Bytes currently held.
#[derive(Default)]
pub(crate) struct MemoryCounters {
    pub(crate) pinned_bytes: ByteCounter,
    pub(crate) registered_bytes: ByteCounter,
    pub(crate) device_bytes: ByteCounter,
}

#[derive(Default)]
pub(crate) struct ByteCounter(AtomicU64);

impl ByteCounter {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        let before = self.0.fetch_sub(bytes as u64, Ordering::Relaxed);
        debug_assert!(before >= bytes as u64, "more given back than taken");
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl DeviceCore {
    pub(crate) fn new(driver: Arc<dyn Driver>, budget: Budget) -> Self {
        Self {
            driver,
            process: Process::current(),
            counters: MemoryCounters::default(),
            budget,
            registration_refused: AtomicBool::new(false),
            device_cache: DeviceMemoryCache::default(),
            releases: IdleReleases::default(),
            stray: Mutex::default(),
        }
    }

    /// Releases a driver resource where no error can be returned. Retries once, since a single failed call
    /// must not leak. Errors are kept for [`take_stray`](Self::take_stray). Returns whether it worked.
    pub(crate) fn give_back(&self, call: impl Fn(&dyn Driver) -> Result<()>) -> bool {
        let try_to = || self.try_to_give_back(&call);
        if !std::thread::panicking() {
            return try_to();
        }
        // Another panic that leaves a destructor now would abort the process.
        catch_unwind(AssertUnwindSafe(try_to)).unwrap_or_else(|panic| {
            std::mem::forget(panic); // dropping it might panic, too
            false
        })
    }

    fn try_to_give_back(&self, call: impl Fn(&dyn Driver) -> Result<()>) -> bool {
        let Err(first) = call(&*self.driver) else {
            return true;
        };
        self.keep_stray(first);
        let second = call(&*self.driver);
        second.map_err(|error| self.keep_stray(error)).is_ok()
    }

    /// Counts an error that no call can return, and keeps it if there is room.
    pub(crate) fn keep_stray(&self, error: Error) {
        let mut stray = lock(&self.stray);
        stray.count += 1;
        if stray.kept.len() < STRAY_ERRORS_AT_MOST {
            stray.kept.push(error);
        }
    }

    /// Like [`keep_stray`](Self::keep_stray), for errors that may be the driver's.
    pub(crate) fn keep_stray_error(&self, error: crate::Error) {
        if let crate::Error::Driver(error) = error {
            self.keep_stray(error);
        }
    }

    pub(crate) fn take_stray(&self) -> Vec<Error> {
        std::mem::take(&mut lock(&self.stray).kept)
    }

    pub(crate) fn stray_count(&self) -> u64 {
        lock(&self.stray).count
    }
}
