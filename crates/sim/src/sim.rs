//! The simulated machine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    DeviceInfo, Driver, Error, ErrorKind, Platform, PointerKind, Result, StreamHandle,
};
use pinlane_model::Profile;

use crate::builder::{Config, SimBuilder};
use crate::checks::Finding;
use crate::driver::SimDriver;
use crate::faults::FaultKind;
use crate::machine_lock::Machine;
use crate::profile_lookup::ProfileNameError;
use crate::slab::Id;
use crate::timeline::Span;

/// A simulated machine: a host with one or more GPUs. Clones refer to the same machine.
#[derive(Clone)]
pub struct Sim {
    machine: Arc<Machine>,
}

/// The allocation or registration that contains an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Kind of memory.
    pub kind: PointerKind,
    /// First address.
    pub base: u64,
    /// Length.
    pub bytes: u64,
    /// The device; `None` for host memory.
    pub device: Option<u32>,
    /// Whether kernels can access it at the same address.
    pub mapped: bool,
}

impl Sim {
    /// Creates a machine with one device of this profile, a plain schedule and checks on.
    ///
    /// # Panics
    /// If [`Profile::validate`] rejects the profile.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self::builder().profile(profile).build()
    }

    /// Creates a machine with one device, by the name of a built-in profile (`h200`, `pcie3-x16`, …)
    /// or the path of a profile file; see [`profile_named`](crate::profile_named).
    ///
    /// ```
    /// # use pinlane_sim::Sim;
    /// let sim = Sim::named("h200")?;
    /// assert_eq!(sim.driver().info().multiprocessors, 132);
    /// assert!(Sim::named("h201").is_err_and(|error| error.to_string().contains("h200")));
    /// # Ok::<(), pinlane_sim::ProfileNameError>(())
    /// ```
    ///
    /// # Errors
    /// [`ProfileNameError`], with the built-in names if there is neither such a profile nor a file.
    pub fn named(name: &str) -> std::result::Result<Self, ProfileNameError> {
        Ok(Self::builder().profile_named(name)?.build())
    }

    /// Configures a machine.
    #[must_use]
    pub fn builder() -> SimBuilder {
        SimBuilder::new()
    }

    pub(crate) fn from_config(config: Config) -> Self {
        let machine = Arc::new(Machine::new(config));
        Self { machine }
    }

    /// Opens the first device.
    ///
    /// # Panics
    /// If the machine has no devices.
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        self.open(0).expect("a machine with a device")
    }

    /// The host's virtual clock. Threads that take part in a run of a pipeline have one each.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.machine.lock().clock_ns()
    }

    /// Advances the host's clock, as if the program computed for this long.
    pub fn host_work(&self, ns: u64) {
        let mut state = self.machine.lock();
        state.spend(ns);
        self.machine.wake_sleepers(&state);
    }

    /// Holds all completions until [`release`](Self::release), so that a test can look at work in
    /// flight. Blocking calls do block.
    pub fn hold(&self) {
        self.machine.lock().hold();
    }

    /// Ends [`hold`](Self::hold).
    pub fn release(&self) {
        self.machine.release();
    }

    /// Advances virtual time to the next event on any device, or until queued callbacks have
    /// returned. Returns false if nothing is outstanding, or completions are held.
    pub fn step(&self) -> bool {
        self.machine.step(Duration::MAX)
    }

    /// Makes a stream report that it is captured into a graph, or not. Nothing else changes: it
    /// tests that callers do not disturb a capture.
    pub fn set_capturing(&self, stream: StreamHandle, capturing: bool) {
        let mut state = self.machine.lock();
        if let Some(stream) = Id::of(stream.raw()).and_then(|id| state.streams.get_mut(id)) {
            stream.capturing = capturing;
        }
    }

    /// The allocation that contains an address, on any device or the host; `None` for memory that
    /// the driver does not know. Takes no virtual time.
    #[must_use]
    pub fn allocation(&self, address: u64) -> Option<Allocation> {
        self.machine.lock().allocation(address)
    }

    /// What ran on which engine and when, in order of completion.
    #[must_use]
    pub fn timeline(&self) -> Vec<Span> {
        self.machine.lock().timeline.clone()
    }

    /// Hash of all calls, their virtual times and results, and all operations. The same for equal
    /// runs on every machine.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.machine.lock().trace.hash()
    }

    /// Misuse found so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.machine.lock().findings.clone()
    }

    /// Ends a hold, completes all outstanding work, and returns all misuse found, including leaks.
    #[must_use]
    pub fn finish(&self) -> Vec<Finding> {
        self.machine.run_out();
        let state = self.machine.lock();
        let mut findings = state.findings.clone();
        if state.config.checks {
            findings.extend(state.leaks());
        }
        findings
    }

    /// How often each kind of fault was injected.
    #[must_use]
    pub fn faults_hit(&self) -> BTreeMap<FaultKind, u64> {
        self.machine.lock().injector.hits.clone()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Sim");
        debug.field("devices", &self.machine.infos);
        debug.finish_non_exhaustive()
    }
}

impl Platform for Sim {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self.machine.infos.clone())
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        let count = self.machine.infos.len() as u32;
        if ordinal >= count {
            let kind = ErrorKind::NoSuchDevice { ordinal, count };
            return Err(Error::new(kind, "open"));
        }
        Ok(Arc::new(SimDriver::new(Arc::clone(&self.machine), ordinal)))
    }
}
