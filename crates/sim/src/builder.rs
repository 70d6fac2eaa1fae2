//! How a simulated machine is set up.

use std::sync::Arc;

use pinlane_driver::{DeviceInfo, PciAddress, Version};
use pinlane_kernels::Kernel;
use pinlane_model::Profile;

use crate::faults::Faults;
use crate::sim::Sim;

/// What a machine is made from.
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) devices: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) faults: Faults,
    pub(crate) checks: bool,
    pub(crate) record_timeline: bool,
    pub(crate) idle_progress: bool,
    pub(crate) kernels: Vec<Arc<Kernel>>,
}

impl Config {
    /// What a device tells about itself.
    pub(crate) fn info(&self, ordinal: u32) -> DeviceInfo {
        let profile = &self.profile;
        let facts = &profile.device;
        let name = format!("Simulated GPU ({})", profile.name);
        let mut info = DeviceInfo::new(ordinal, name);
        info.memory_bytes = facts.memory_bytes;
        info.async_engines = facts.async_engines;
        info.multiprocessors = facts.multiprocessors;
        info.compute_capability = facts.compute_capability.into();
        info.pci = Some(PciAddress {
            domain: facts.pci.domain,
            bus: facts.pci.bus + ordinal,
            device: facts.pci.device,
        });
        info.numa_node = facts.numa_node;
        info.can_map_host = true;
        info.can_register = true;
        info.can_register_read_only = true;
        info.stream_ordered_alloc = true;
        info.batch_copy = true;
        info.driver_version = Version {
            major: 13,
            minor: 0,
        };
        info.simulated = Some(profile.name.clone());
        info
    }
}

/// Sets up a [`Sim`].
pub struct SimBuilder {
    config: Config,
}

impl SimBuilder {
    pub(crate) fn new() -> Self {
        let profile = Profile::builtin("pcie3-x16").expect("a built-in profile");
        Self {
            config: Config {
                profile,
                devices: 1,
                seed: None,
                faults: Faults::none(),
                checks: true,
                record_timeline: true,
                idle_progress: true,
                kernels: Vec::new(),
            },
        }
    }

    /// Link and device. `pcie3-x16` unless said otherwise.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.profile = profile;
        self
    }

    /// Number of devices. One unless said otherwise.
    #[must_use]
    pub fn devices(mut self, count: u32) -> Self {
        self.config.devices = count;
        self
    }

    /// An adversary's schedule instead of the plain one: any that the stream rules allow, chosen
    /// by this number.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Faults to inject, drawn from the seed (from 0 where there is none).
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.config.faults = faults;
        self
    }

    /// Whether misuse is looked for. On unless said otherwise.
    #[must_use]
    pub fn checks(mut self, on: bool) -> Self {
        self.config.checks = on;
        self
    }

    /// Whether [`Sim::timeline`] is kept. On unless said otherwise.
    #[must_use]
    pub fn record_timeline(mut self, on: bool) -> Self {
        self.config.record_timeline = on;
        self
    }

    /// Whether virtual time passes while no call is made, as long as a host callback waits for
    /// its turn. On unless said otherwise, so that a parked task is woken. Off, time passes in
    /// calls that wait and in [`Sim::step`] only, and these let callbacks return before they go
    /// on: then a run of one thread replays exactly, callbacks and all.
    #[must_use]
    pub fn idle_progress(mut self, on: bool) -> Self {
        self.config.idle_progress = on;
        self
    }

    /// Adds a kernel, known by its name to modules that have an entry of that name. It goes
    /// before a built-in one.
    #[must_use]
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.config.kernels.push(Arc::new(kernel));
        self
    }

    /// The machine.
    ///
    /// # Panics
    /// With a profile that [`Profile::validate`] refuses, or with more than 64 devices.
    #[must_use]
    pub fn build(self) -> Sim {
        if let Err(error) = self.config.profile.validate() {
            panic!("{error}");
        }
        assert!(self.config.devices <= 64, "at most 64 devices");
        Sim::from_config(self.config)
    }
}
