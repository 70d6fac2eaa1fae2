//! A link and its device, as data.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::cost_curve::{clamp, ns_at_rate};
use crate::{CostCurve, LinearCost};

/// Name and text of each built-in profile, slowest link first, the free one last.
const BUILTIN: [(&str, &str); 5] = [
    ("pcie3-x16", include_str!("../profiles/pcie3-x16.toml")),
    ("pcie4-x16", include_str!("../profiles/pcie4-x16.toml")),
    ("pcie5-x16", include_str!("../profiles/pcie5-x16.toml")),
    ("h200", include_str!("../profiles/h200.toml")),
    ("null", include_str!("../profiles/null.toml")),
];

/// Parsed once each: tests use them a million times.
static PARSED: [OnceLock<Profile>; BUILTIN.len()] = [const { OnceLock::new() }; BUILTIN.len()];

/// The direction of a copy over the link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From host to device memory.
    HostToDevice,
    /// From device to host memory.
    DeviceToHost,
}

/// The host memory of a copy. Registered and write-combined memory cost the same as pinned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostKind {
    /// Ordinary memory, which the driver copies through its own buffer.
    Pageable,
    /// Page-locked memory, which the copy engine accesses directly.
    Pinned,
}

/// A link and its device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name, such as `pcie3-x16`.
    pub name: String,
    /// Duration of a copy while the other direction is busy, in percent of its duration alone.
    /// 100 means that the directions do not slow each other.
    pub both_ways_percent: u64,
    /// Rate of a copy inside device memory, in bytes copied; 0 means free.
    pub d2d_bytes_per_s: u64,
    /// The device.
    pub device: DeviceFacts,
    /// Copies from host to device.
    pub h2d: DirectionCosts,
    /// Copies from device to host.
    pub d2h: DirectionCosts,
    /// Kernels.
    pub kernel: KernelCosts,
    /// Host time of driver calls.
    pub calls: CallCosts,
    /// Host time of pinning.
    pub host_memory: HostMemoryCosts,
    /// Speed of the express lane, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub express: Option<ExpressCosts>,
    /// Speed of reading files from the page cache, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileCosts>,
}

/// The properties of a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFacts {
    /// Name of the real device.
    pub name: String,
    /// Device memory.
    pub memory_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability, major and minor.
    pub compute_capability: [u32; 2],
    /// Copy engines that the device reports, at least as many as of both directions together; 0 if unknown.
    pub async_engines: u32,
    /// Copies to the device that run concurrently, at least 1.
    pub h2d_engines: u32,
    /// Copies from the device that run concurrently; 0 means that they share the engines of the
    /// other direction.
    pub d2h_engines: u32,
    /// Delay from the end of an operation to the start of a dependent one (same stream, or by an
    /// event) on another engine.
    #[serde(default)]
    pub handover_ns: u64,
    /// Delay from the end of a copy to the start of one from another stream on the same engine.
    /// Copies of one stream follow each other without delay.
    #[serde(default)]
    pub switch_ns: u64,
    /// NUMA node of the device, if known.
    #[serde(default)]
    pub numa_node: Option<u32>,
    /// PCI address. Device N of a simulated machine is N buses further.
    pub pci: PciFacts,
}

/// A PCI address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciFacts {
    /// PCI domain.
    pub domain: u32,
    /// Bus number.
    pub bus: u32,
    /// Device number on the bus.
    pub device: u32,
}

/// Costs of copies in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionCosts {
    /// From or to ordinary memory.
    pub pageable: CostCurve,
    /// From or to page-locked memory.
    pub pinned: CostCurve,
}

/// Costs of kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCosts {
    /// Overhead of starting and ending a kernel.
    pub launch_ns: u64,
    /// Device memory bandwidth of a kernel, reads and writes together; 0 means free.
    pub bytes_per_s: u64,
}

/// Host time of driver calls, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCosts {
    /// Submitting a copy, a memset, a kernel or a host callback.
    pub submit_ns: u64,
    /// Querying an event or a stream.
    pub query_ns: u64,
    /// Creating, recording, waiting for (on a stream) and destroying events.
    pub event_ns: u64,
    /// Entering a call that blocks.
    pub sync_ns: u64,
    /// Waking a blocked thread.
    pub wake_ns: u64,
    /// Allocating and freeing device memory.
    pub device_alloc_ns: u64,
    /// Creating and destroying streams.
    pub stream_ns: u64,
    /// Loading and unloading a module.
    pub module_ns: u64,
    /// Any other call.
    pub other_ns: u64,
}

/// Host time of pinning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostMemoryCosts {
    /// Allocating pinned memory.
    pub alloc: LinearCost,
    /// Freeing it.
    pub free: LinearCost,
    /// Page-locking memory in place.
    pub register: LinearCost,
    /// Undoing that.
    pub unregister: LinearCost,
}

/// Speed of loading files from the page cache to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCosts {
    /// Reader threads: the fewest that are nearly as fast as any number.
    pub threads: u32,
    /// Rate that they reach.
    pub bytes_per_s: u64,
}

/// Costs of copying ordinary memory by the express lane, from call to return.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpressCosts {
    /// Threads that copy.
    pub lanes: u32,
    /// A copy to the device, alone.
    pub up: CostCurve,
    /// A copy from the device, alone.
    pub down: CostCurve,
    /// Two copies of the same size in opposite directions, started together, until both are done.
    pub both: CostCurve,
}

impl ExpressCosts {
    /// Nanoseconds of a copy of `bytes` alone.
    #[must_use]
    pub fn ns(&self, direction: Direction, bytes: u64) -> u64 {
        match direction {
            Direction::HostToDevice => self.up.ns(bytes),
            Direction::DeviceToHost => self.down.ns(bytes),
        }
    }

    /// Duration of a copy of `bytes` while one of the other direction runs, in percent of its
    /// duration alone. The faster copy ends first; the other one then proceeds at full speed.
    #[must_use]
    pub fn both_percent(&self, bytes: u64) -> u64 {
        let (up_ns, down_ns) = (self.up.ns(bytes), self.down.ns(bytes));
        let together_ns = self.both.ns(bytes).saturating_sub(up_ns.abs_diff(down_ns));
        let percent = u128::from(together_ns) * 100 / u128::from(up_ns.min(down_ns).max(1));
        clamp(percent).clamp(100, 1000)
    }
}

impl Profile {
    /// Returns the built-in profile of this name.
    ///
    /// # Panics
    /// Never: a test parses each of them.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        let index = BUILTIN.iter().position(|(known, _)| *known == name)?;
        let parse = || Self::from_toml(BUILTIN[index].1).expect("a built-in profile is valid");
        Some(PARSED[index].get_or_init(parse).clone())
    }

    /// Names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Parses and validates a profile.
    ///
    /// # Errors
    /// [`ProfileError`], with the name of the field.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError::Parse {
            message: error.to_string(),
        })?;
        profile.validate()?;
        Ok(profile)
    }

    /// Writes the profile as TOML that [`from_toml`](Self::from_toml) reads back unchanged.
    ///
    /// # Panics
    /// Never: TOML can represent every profile.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("text and numbers in named fields")
    }

    /// Nanoseconds of one copy that has the link to itself.
    #[must_use]
    pub fn copy_ns(&self, direction: Direction, kind: HostKind, bytes: u64) -> u64 {
        let costs = match direction {
            Direction::HostToDevice => &self.h2d,
            Direction::DeviceToHost => &self.d2h,
        };
        match kind {
            HostKind::Pageable => costs.pageable.ns(bytes),
            HostKind::Pinned => costs.pinned.ns(bytes),
        }
    }

    /// Nanoseconds of a copy or fill inside device memory.
    #[must_use]
    pub fn device_copy_ns(&self, bytes: u64) -> u64 {
        let moving = ns_at_rate(bytes, self.d2d_bytes_per_s);
        self.kernel.launch_ns.saturating_add(moving)
    }

    /// Nanoseconds of a kernel that accesses `bytes_touched` and takes `fixed_ns` in addition.
    #[must_use]
    pub fn kernel_ns(&self, bytes_touched: u64, fixed_ns: u64) -> u64 {
        let moving = ns_at_rate(bytes_touched, self.kernel.bytes_per_s);
        let fixed = self.kernel.launch_ns.saturating_add(fixed_ns);
        fixed.saturating_add(moving)
    }

    /// Checks the values that the arithmetic and the simulated device rely on.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] for the first invalid field.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let at_least = |field: &str, value: u64, least: u64| {
            if value < least {
                let reason = format!("must be at least {least}, is {value}");
                return Err(ProfileError::invalid(field, reason));
            }
            Ok(())
        };
        let device = &self.device;
        for (field, name) in [("name", &self.name), ("device.name", &device.name)] {
            if name.trim().is_empty() {
                return Err(ProfileError::invalid(field, "must not be empty"));
            }
        }
        at_least("both_ways_percent", self.both_ways_percent, 100)?;
        at_least("device.memory_bytes", device.memory_bytes, 1)?;
        at_least("device.multiprocessors", device.multiprocessors.into(), 1)?;
        at_least("device.h2d_engines", device.h2d_engines.into(), 1)?;
        let engines = device.h2d_engines.saturating_add(device.d2h_engines);
        // A device that reports none has an unknown number.
        if device.async_engines > 0 && engines > device.async_engines {
            let reason = format!(
                "is {}, but h2d_engines and d2h_engines are {engines} together",
                device.async_engines
            );
            return Err(ProfileError::invalid("device.async_engines", reason));
        }
        let check_knots = |field: &str, curve: &CostCurve| {
            let invalid = |why| ProfileError::invalid(format!("{field}.knots"), why);
            curve.check_knots().map_err(invalid)
        };
        check_knots("h2d.pageable", &self.h2d.pageable)?;
        check_knots("h2d.pinned", &self.h2d.pinned)?;
        check_knots("d2h.pageable", &self.d2h.pageable)?;
        check_knots("d2h.pinned", &self.d2h.pinned)?;
        if let Some(express) = &self.express {
            at_least("express.lanes", express.lanes.into(), 1)?;
            for (field, curve) in [
                ("express.up", &express.up),
                ("express.down", &express.down),
                ("express.both", &express.both),
            ] {
                check_knots(field, curve)?;
                at_least(&format!("{field}.bytes_per_s"), curve.bytes_per_s, 1)?;
            }
        }
        if let Some(files) = self.files {
            at_least("files.threads", files.threads.into(), 1)?;
            at_least("files.bytes_per_s", files.bytes_per_s, 1)?;
        }
        Ok(())
    }
}

/// Why a profile cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, a missing or unknown field, or a value of the wrong type.
    #[error("cannot parse the profile: {message}")]
    Parse {
        /// The parser's message, with line and field.
        message: String,
    },
    /// A value out of range.
    #[error("profile field `{field}`: {reason}")]
    Invalid {
        /// Path of the field, such as `h2d.pinned.knots`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ProfileError {
    pub(crate) fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }
}
