//! What a driver tells about devices and addresses.

use std::fmt;

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus number.
    pub bus: u32,
    /// Device number on the bus.
    pub device: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.0",
            self.domain, self.bus, self.device
        )
    }
}

/// A version of the driver's interface, such as 13.0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Properties of a device that do not change.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Number of the device on its platform, from 0.
    pub ordinal: u32,
    /// Name as the vendor gives it.
    pub name: String,
    /// Device memory in all.
    pub memory_bytes: u64,
    /// Copy engines that work beside kernels.
    pub async_engines: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Place on the PCI bus, where there is one.
    pub pci: Option<PciAddress>,
    /// NUMA node that the device hangs on, where the system tells.
    pub numa_node: Option<u32>,
    /// Shares its memory with the host (pinning gains nothing there).
    pub integrated: bool,
    /// Reaches ordinary host memory through the host's own page tables, as over NVLink-C2C (pinning
    /// gains little there).
    pub coherent: bool,
    /// Kernels can read and write mapped pinned memory.
    pub can_map_host: bool,
    /// Existing memory can be page-locked in place.
    pub can_register: bool,
    /// Memory can be registered read-only.
    pub can_register_read_only: bool,
    /// Has stream-ordered allocation.
    pub stream_ordered_alloc: bool,
    /// Has batch copies.
    pub batch_copy: bool,
    /// Interface version of the driver.
    pub driver_version: Version,
    /// Profile name of a simulated device; `None` for a real one.
    pub simulated: Option<String>,
}

impl DeviceInfo {
    /// A device with this number and name, nothing known about it yet.
    #[must_use]
    pub fn new(ordinal: u32, name: impl Into<String>) -> Self {
        Self {
            ordinal,
            name: name.into(),
            memory_bytes: 0,
            async_engines: 0,
            multiprocessors: 0,
            compute_capability: (0, 0),
            pci: None,
            numa_node: None,
            integrated: false,
            coherent: false,
            can_map_host: false,
            can_register: false,
            can_register_read_only: false,
            stream_ordered_alloc: false,
            batch_copy: false,
            driver_version: Version { major: 0, minor: 0 },
            simulated: None,
        }
    }
}

/// Device memory at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryInfo {
    /// Not allocated.
    pub free_bytes: u64,
    /// In all.
    pub total_bytes: u64,
}

/// What the driver knows of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PointerKind {
    /// Ordinary host memory, or nothing that the driver knows.
    Pageable,
    /// Inside memory from [`Driver::host_alloc`](crate::Driver::host_alloc).
    Pinned,
    /// Inside memory given to [`Driver::host_register`](crate::Driver::host_register).
    Registered,
    /// Device memory.
    Device,
    /// Managed memory, which moves by itself.
    Managed,
}
