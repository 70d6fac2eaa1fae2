//! What NVIDIA's management library (libnvidia-ml, found at run time) tells of a GPU: plain facts,
//! `None` for each that it does not tell.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::ComputeMode as Mode;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use pinlane_driver::PciAddress;

use crate::pcie::Link;

/// The name that the driver installs. The shorter one comes with development packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The longest name of a process that is asked for.
const NAME_BYTES: usize = 256;

/// Who may use a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ComputeMode {
    Shared,
    /// One process at a time.
    Exclusive,
    Prohibited,
}

/// A process that computes on a GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GpuProcess {
    pub(crate) pid: u32,
    pub(crate) name: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
}

/// A GPU, as it is now.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct GpuState {
    pub(crate) link: Option<Link>,
    /// Packets that were sent again since the driver was loaded.
    pub(crate) replays: Option<u32>,
    pub(crate) compute_mode: Option<ComputeMode>,
    /// Whether the driver keeps the GPU awake while nobody uses it.
    pub(crate) persistence: Option<bool>,
    pub(crate) confidential: Option<bool>,
    pub(crate) processes: Option<Vec<GpuProcess>>,
    /// Whether processes use it through MPS.
    pub(crate) mps: Option<bool>,
}

/// The library, opened.
pub(crate) struct Management(Nvml);

impl Management {
    /// Opens the library, or says why it cannot be.
    pub(crate) fn open() -> Result<Self, String> {
        let opened = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init();
        opened.map(Self).map_err(|error| match error {
            NvmlError::LibloadingError(_) => format!("{LIBRARY} cannot be loaded"),
            other => format!("{LIBRARY}: {other}"),
        })
    }

    /// Version of the driver, such as 580.159.03.
    pub(crate) fn driver_version(&self) -> Option<String> {
        self.0.sys_driver_version().ok()
    }

    /// The link of the GPU at this address.
    pub(crate) fn link(&self, pci: PciAddress) -> Option<Link> {
        let device = self.0.device_by_pci_bus_id(pci.to_string()).ok()?;
        let link = Link {
            generation: device.current_pcie_link_gen().ok()?,
            width: device.current_pcie_link_width().ok()?,
            max_generation: device.max_pcie_link_gen().ok()?,
            max_width: device.max_pcie_link_width().ok()?,
        };
        // A GPU that has no such link says so with zeros.
        (link.width > 0 && link.max_width > 0).then_some(link)
    }

    /// Packets that the GPU at this address sent again since the driver was loaded.
    pub(crate) fn replays(&self, pci: PciAddress) -> Option<u32> {
        let device = self.0.device_by_pci_bus_id(pci.to_string()).ok()?;
        device.pcie_replay_counter().ok()
    }

    /// Everything about the GPU at this address; nothing where the library does not know it.
    pub(crate) fn state(&self, pci: PciAddress) -> GpuState {
        let Ok(device) = self.0.device_by_pci_bus_id(pci.to_string()) else {
            return GpuState::default();
        };
        let mps = device.mps_running_compute_processes();
        GpuState {
            link: self.link(pci),
            replays: self.replays(pci),
            compute_mode: device.compute_mode().ok().map(|mode| match mode {
                Mode::Default => ComputeMode::Shared,
                Mode::ExclusiveThread | Mode::ExclusiveProcess => ComputeMode::Exclusive,
                Mode::Prohibited => ComputeMode::Prohibited,
            }),
            persistence: device.is_in_persistent_mode().ok(),
            confidential: match device.is_cc_enabled() {
                Ok(on) => Some(on),
                // A GPU that cannot do it does not do it.
                Err(NvmlError::NotSupported) => Some(false),
                Err(_) => None,
            },
            processes: device.running_compute_processes().ok().map(|processes| {
                let mut all: Vec<_> = processes.iter().map(|p| self.process(p)).collect();
                all.sort_by_key(|process| process.pid);
                all
            }),
            mps: mps.ok().map(|processes| !processes.is_empty()),
        }
    }

    fn process(&self, info: &nvml_wrapper::struct_wrappers::device::ProcessInfo) -> GpuProcess {
        GpuProcess {
            pid: info.pid,
            name: self.0.sys_process_name(info.pid, NAME_BYTES).ok(),
            memory_bytes: match info.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        }
    }
}
