//! Properties of devices and addresses.

use std::fmt;

/// The PCI address of a device.
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
        let (domain, bus, device) = (self.domain, self.bus, self.device);
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.0")
    }
}

/// A version of the driver's interface, such as 13.0.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// The 13 of 13.0.
    pub major: u32,
    /// The 0 of 13.0.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Constant properties of a device.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Index of the device on its platform, from 0.
    pub ordinal: u32,
    /// The vendor's name.
    pub name: String,
    /// Total device memory.
    pub memory_bytes: u64,
    /// Copy engines that run beside kernels.
    pub async_engines: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// PCI address, if known.
    pub pci: Option<PciAddress>,
    /// NUMA node that the device is attached to, if known.
    pub numa_node: Option<u32>,
    /// Shares its memory with the host, so pinning gains nothing.
    pub integrated: bool,
    /// Accesses pageable host memory through the host's page tables, as over NVLink-C2C, so pinning
    /// gains little.
    pub coherent: bool,
    /// Kernels can access mapped pinned memory.
    pub can_map_host: bool,
    /// Existing memory can be page-locked in place.
    pub can_register: bool,
    /// Memory can be registered read-only.
    pub can_register_read_only: bool,
    /// Supports stream-ordered allocation.
    pub stream_ordered_alloc: bool,
    /// Supports batch copies.
    pub batch_copy: bool,
    /// Version of the driver's interface.
    pub driver_version: Version,
    /// Profile name of a simulated device; `None` for a real one.
    pub simulated: Option<String>,
}

impl DeviceInfo {
    /// A device with this ordinal and name. All other properties are zero, false or unknown.
    #[must_use]
    pub fn new(ordinal: u32, name: impl Into<String>) -> Self {
        Self {
            ordinal,
            name: name.into(),
            ..Self::default()
        }
    }
}

/// Current use of device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryInfo {
    /// Free memory.
    pub free_bytes: u64,
    /// Total memory.
    pub total_bytes: u64,
}

/// The kind of memory that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PointerKind {
    /// Ordinary host memory, or an address that the driver does not know.
    Pageable,
    /// Memory from [`Driver::host_alloc`](crate::Driver::host_alloc).
    Pinned,
    /// Memory registered with [`Driver::host_register`](crate::Driver::host_register).
    Registered,
    /// Device memory.
    Device,
    /// Managed memory, which migrates between host and device.
    Managed,
}
