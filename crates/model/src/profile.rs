//! A link and its device, as data.

use serde::{Deserialize, Serialize};

use crate::curve::ns_at_rate;
use crate::{Area, CostCurve, ProfileError};

/// Which way a copy goes over the link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From host to device memory.
    HostToDevice,
    /// From device to host memory.
    DeviceToHost,
}

/// What the host end of a copy is. Registered and write-combined memory cost as pinned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostKind {
    /// Ordinary memory, which the driver copies through a buffer of its own.
    Pageable,
    /// Page-locked memory, which the copy engine reaches directly.
    Pinned,
}

/// A link and the device behind it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name, such as `pcie3-x16`.
    pub name: String,
    /// While the other direction is busy, a copy takes this many percent of its time alone: 100 is
    /// a link whose directions do not disturb each other.
    pub both_ways_percent: u64,
    /// Rate of a copy inside device memory, in bytes copied; 0 means that it costs nothing.
    pub d2d_bytes_per_s: u64,
    /// What the device is.
    pub device: DeviceFacts,
    /// Copies from host to device.
    pub h2d: DirectionCosts,
    /// Copies from device to host.
    pub d2h: DirectionCosts,
    /// Kernels.
    pub kernel: KernelCosts,
    /// What a call costs the host thread.
    pub calls: CallCosts,
    /// What pinning costs the host thread.
    pub host_memory: HostMemoryCosts,
    /// How fast the express lane moves ordinary memory, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub express: Option<ExpressCosts>,
    /// How files that are in the page cache are read best, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileCosts>,
}

/// What the device is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFacts {
    /// Name, without a word on simulation.
    pub name: String,
    /// Device memory.
    pub memory_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability, major and minor.
    pub compute_capability: [u32; 2],
    /// Copy engines that the device reports.
    pub async_engines: u32,
    /// Copies to the device that run at the same time, at least 1.
    pub h2d_engines: u32,
    /// Copies from the device that run at the same time; 0 means that they share the engines of
    /// the other direction.
    pub d2h_engines: u32,
    /// From the end of an operation to the start of one that comes behind it, in its stream or by
    /// an event, on another engine.
    #[serde(default)]
    pub handover_ns: u64,
    /// From the end of a copy to the start of one of another stream on the same engine. Behind a
    /// copy of its own stream one starts at once.
    #[serde(default)]
    pub switch_ns: u64,
    /// NUMA node of the device, where known.
    #[serde(default)]
    pub numa_node: Option<u32>,
    /// Place on the PCI bus; device N of a machine with several comes N buses later.
    pub pci: PciFacts,
}

/// Place on the PCI bus.
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

/// Copies of one direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionCosts {
    /// From or to ordinary memory.
    pub pageable: CostCurve,
    /// From or to page-locked memory.
    pub pinned: CostCurve,
}

/// Kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCosts {
    /// From the start of a kernel to its first memory access, and back.
    pub launch_ns: u64,
    /// Device memory that a kernel reads and writes in a second; 0 means that it costs nothing.
    pub bytes_per_s: u64,
}

/// Host time of the calls, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCosts {
    /// Submitting a copy, a memset, a kernel or a host callback.
    pub submit_ns: u64,
    /// Asking whether an event or a stream is done.
    pub query_ns: u64,
    /// Creating, recording, waiting for (on a stream) and destroying events.
    pub event_ns: u64,
    /// Entering a call that waits.
    pub sync_ns: u64,
    /// From the end of what a thread waits for until it runs again.
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
    pub alloc: Area,
    /// Freeing it.
    pub free: Area,
    /// Page-locking memory in place.
    pub register: Area,
    /// Undoing that.
    pub unregister: Area,
}

/// Files that are in the page cache, to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCosts {
    /// Threads that read: the fewest that are nearly as fast as any number.
    pub threads: u32,
    /// What they bring to the device.
    pub bytes_per_s: u64,
}

/// Copies of ordinary memory by the express lane: lanes and link together, from the call until it
/// returns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpressCosts {
    /// Threads at work.
    pub lanes: u32,
    /// A copy to the device, alone.
    pub up: CostCurve,
    /// A copy from the device, alone.
    pub down: CostCurve,
    /// A copy to the device and one from it, of so many bytes each, that begin together, until both
    /// are done.
    pub both: CostCurve,
}

impl ExpressCosts {
    /// Nanoseconds of a copy of `bytes` where nothing slows it.
    #[must_use]
    pub fn ns(&self, direction: Direction, bytes: u64) -> u64 {
        match direction {
            Direction::HostToDevice => self.up.ns(bytes),
            Direction::DeviceToHost => self.down.ns(bytes),
        }
    }

    /// While copies of both directions of `bytes` go on, each takes this many percent of its time
    /// alone. The faster one is done before the other, which then goes on alone, up to the time
    /// that both take.
    #[must_use]
    pub fn both_percent(&self, bytes: u64) -> u64 {
        let (up_ns, down_ns) = (self.up.ns(bytes), self.down.ns(bytes));
        let together_ns = self.both.ns(bytes).saturating_sub(up_ns.abs_diff(down_ns));
        let percent = u128::from(together_ns) * 100 / u128::from(up_ns.min(down_ns).max(1));
        u64::try_from(percent).unwrap_or(u64::MAX).clamp(100, 1000)
    }
}

impl Profile {
    /// Reads and checks a profile.
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

    /// The profile as TOML that [`from_toml`](Self::from_toml) reads back as it was.
    ///
    /// # Panics
    /// Never: a profile holds only what TOML can.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("text and numbers in named fields")
    }

    /// Nanoseconds that one copy over the link takes when it has the link for itself.
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

    /// Nanoseconds of a kernel that touches so many bytes and takes `fixed_ns` beside that.
    #[must_use]
    pub fn kernel_ns(&self, bytes_touched: u64, fixed_ns: u64) -> u64 {
        let moving = ns_at_rate(bytes_touched, self.kernel.bytes_per_s);
        self.kernel
            .launch_ns
            .saturating_add(fixed_ns)
            .saturating_add(moving)
    }

    /// Checks the values that the arithmetic and the simulated device rely on.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] for the first field that makes no sense.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let at_least = |field: &str, value: u64, least: u64| {
            if value < least {
                let reason = format!("must be at least {least}, is {value}");
                return Err(ProfileError::invalid(field, reason));
            }
            Ok(())
        };
        if self.name.trim().is_empty() {
            return Err(ProfileError::invalid("name", "must not be empty"));
        }
        if self.device.name.trim().is_empty() {
            return Err(ProfileError::invalid("device.name", "must not be empty"));
        }
        at_least("both_ways_percent", self.both_ways_percent, 100)?;
        at_least("device.memory_bytes", self.device.memory_bytes, 1)?;
        at_least(
            "device.multiprocessors",
            self.device.multiprocessors.into(),
            1,
        )?;
        at_least("device.h2d_engines", self.device.h2d_engines.into(), 1)?;
        for (field, curve) in [
            ("h2d.pageable", &self.h2d.pageable),
            ("h2d.pinned", &self.h2d.pinned),
            ("d2h.pageable", &self.d2h.pageable),
            ("d2h.pinned", &self.d2h.pinned),
        ] {
            curve.validate(field)?;
        }
        if let Some(express) = &self.express {
            at_least("express.lanes", express.lanes.into(), 1)?;
            for (field, curve) in [
                ("express.up", &express.up),
                ("express.down", &express.down),
                ("express.both", &express.both),
            ] {
                curve.validate(field)?;
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
