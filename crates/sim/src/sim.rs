//! The simulated machine, as its users see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinlane_driver::{
    DeviceInfo, Driver, Error, ErrorKind, Platform, PointerKind, Result, StreamHandle,
};
use pinlane_model::Profile;

use crate::builder::{Config, SimBuilder};
use crate::driver::SimDriver;
use crate::faults::FaultKind;
use crate::finding::Finding;
use crate::machine::Machine;
use crate::timeline::Span;

/// A simulated machine: one or more GPUs, and the host that they hang on. Clones are handles of
/// the same machine.
#[derive(Clone)]
pub struct Sim {
    machine: Arc<Machine>,
}

/// The allocation or registration that an address lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// What kind of memory it is.
    pub kind: PointerKind,
    /// Its first address.
    pub base: u64,
    /// Its length.
    pub bytes: u64,
    /// The device that it is on; none for host memory.
    pub device: Option<u32>,
    /// Kernels can use it at the same address.
    pub mapped: bool,
}

impl Sim {
    /// A machine with one device of this profile, plain schedule, checks on.
    ///
    /// # Panics
    /// With a profile that [`Profile::validate`] refuses.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self::builder().profile(profile).build()
    }

    /// Sets up a machine step by step.
    #[must_use]
    pub fn builder() -> SimBuilder {
        SimBuilder::new()
    }

    pub(crate) fn from_config(config: Config) -> Self {
        let machine = Arc::new(Machine::new(config));
        Self { machine }
    }

    /// The first device.
    ///
    /// # Panics
    /// On a machine that was built with no devices.
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        self.open(0).expect("a machine with a device")
    }

    /// The host's virtual clock.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.machine.lock().now_ns
    }

    /// The program computes for so long: the host's clock runs on, and the devices beside it.
    pub fn host_work(&self, ns: u64) {
        self.machine.lock().spend(ns);
    }

    /// From here on nothing completes, and calls that wait do wait, until
    /// [`release`](Self::release): that is how a test shows what is in flight.
    pub fn hold(&self) {
        self.machine.hold();
    }

    /// Ends [`hold`](Self::hold).
    pub fn release(&self) {
        self.machine.release();
    }

    /// Lets virtual time pass to the next thing that happens on any device, or lets the callbacks
    /// return that were handed out. False if nothing is outstanding, or all is held.
    pub fn step(&self) -> bool {
        self.machine.step()
    }

    /// From here on a stream says that it is captured into a graph, or that it is not. Nothing else
    /// changes: there are no graphs here, only callers that must not disturb a capture.
    pub fn set_capturing(&self, stream: StreamHandle, capturing: bool) {
        self.machine.lock().set_capturing(stream, capturing);
    }

    /// What an address belongs to, on any device or on the host; none for memory that the driver
    /// does not know. Costs no virtual time.
    #[must_use]
    pub fn allocation(&self, address: u64) -> Option<Allocation> {
        self.machine.lock().allocation(address)
    }

    /// What ran when on which engine, in the order in which it was done.
    #[must_use]
    pub fn timeline(&self) -> Vec<Span> {
        self.machine.lock().timeline.clone()
    }

    /// Hash over all calls, with their virtual times and outcomes, and over what ran on the
    /// devices. Equal for equal runs, on every machine.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.machine.lock().trace.hash()
    }

    /// Misuse seen so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.machine.lock().findings.clone()
    }

    /// Ends a hold, lets all outstanding work complete, and gives the misuse seen, with what is
    /// still there and should not be.
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
        self.machine.lock().injector.hits().clone()
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
