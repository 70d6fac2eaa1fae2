//! Configuration of a simulated machine.

use pinlane_driver::{DeviceInfo, PciAddress, Version};
use pinlane_kernels::Kernel;
use pinlane_model::Profile;

use crate::faults::Faults;
use crate::profile_lookup::{ProfileNameError, profile_named};
use crate::sim::Sim;

/// The configuration of a machine.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) devices: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) faults: Faults,
    pub(crate) checks: bool,
    pub(crate) record_timeline: bool,
    pub(crate) idle_progress: bool,
    pub(crate) kernels: Vec<Kernel>,
}

impl Config {
    /// The properties that a device reports.
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

/// Builds a [`Sim`].
#[derive(Debug)]
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

    /// Sets link and device. Default: `pcie3-x16`.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.profile = profile;
        self
    }

    /// Sets link and device by the name of a built-in profile, or the path of a profile file; see
    /// [`profile_named`].
    ///
    /// # Errors
    /// [`ProfileNameError`], with the built-in names if there is neither such a profile nor a file.
    pub fn profile_named(self, name: &str) -> Result<Self, ProfileNameError> {
        Ok(self.profile(profile_named(name)?))
    }

    /// Sets the number of devices. Default: 1.
    #[must_use]
    pub fn devices(mut self, count: u32) -> Self {
        self.config.devices = count;
        self
    }

    /// Replaces the plain schedule by an adversary's: any that the stream rules allow, chosen by this
    /// seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Injects faults, chosen by the seed (0 if there is none).
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.config.faults = faults;
        self
    }

    /// Turns the checks for misuse on or off. Default: on.
    #[must_use]
    pub fn checks(mut self, on: bool) -> Self {
        self.config.checks = on;
        self
    }

    /// Turns recording of [`Sim::timeline`] on or off. Default: on.
    #[must_use]
    pub fn record_timeline(mut self, on: bool) -> Self {
        self.config.record_timeline = on;
        self
    }

    /// Whether virtual time passes outside of calls, as long as host callbacks are pending.
    /// Default: on, so that parked tasks are woken. If off, time passes in blocking calls and
    /// [`Sim::step`] only, and these wait for callbacks to return. A run of one thread then replays
    /// exactly, including callbacks.
    #[must_use]
    pub fn idle_progress(mut self, on: bool) -> Self {
        self.config.idle_progress = on;
        self
    }

    /// Adds the CPU twin of a kernel, which runs whenever a module's kernel of that name is launched.
    /// It takes precedence over a built-in one.
    ///
    /// ```
    /// use pinlane_driver::{KernelArg, ParamKind};
    /// use pinlane_sim::{Kernel, Sim};
    ///
    /// // extern "C" __global__ void set_answer(unsigned *target) { *target = 42; }
    /// let twin = Kernel {
    ///     name: "set_answer",
    ///     params: &[ParamKind::Ptr],
    ///     run: |memory, _shape, args| match args {
    ///         [KernelArg::Ptr(target)] => memory.write(*target, &42_u32.to_le_bytes()),
    ///         _ => unreachable!("arguments match `params`"),
    ///     },
    ///     bytes_touched: |_args| 4,
    ///     fixed_ns: |_args| 0,
    ///     tail_ns: |_args| 0,
    /// };
    /// let sim = Sim::builder().kernel(twin).build();
    /// ```
    #[must_use]
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.config.kernels.push(kernel);
        self
    }

    /// Builds the machine.
    ///
    /// # Panics
    /// If [`Profile::validate`] rejects the profile, or with more than 64 devices.
    #[must_use]
    pub fn build(self) -> Sim {
        if let Err(error) = self.config.profile.validate() {
            panic!("{error}");
        }
        assert!(self.config.devices <= 64, "at most 64 devices");
        Sim::from_config(self.config)
    }
}
