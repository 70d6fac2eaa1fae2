//! The state of a GPU from NVIDIA's management library (libnvidia-ml), loaded at run time. What the library
//! does not report is `None`.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
pub(crate) use nvml_wrapper::enum_wrappers::device::ComputeMode;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use pinlane_driver::PciAddress;

use super::pci::Link;

/// The name that the driver installs; only development packages have a shorter one.
const LIBRARY: &str = "libnvidia-ml.so.1";

const PROCESS_NAME_BYTES: usize = 256;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GpuProcess {
    pub(crate) pid: u32,
    pub(crate) name: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct GpuState {
    pub(crate) link: Option<Link>,
    /// Packets resent since the driver was loaded.
    pub(crate) replays: Option<u32>,
    pub(crate) compute_mode: Option<ComputeMode>,
    /// Whether the driver keeps an unused GPU initialized.
    pub(crate) persistence: Option<bool>,
    pub(crate) confidential: Option<bool>,
    pub(crate) processes: Option<Vec<GpuProcess>>,
    /// Whether it has MPS clients.
    pub(crate) mps: Option<bool>,
}

pub(crate) struct Management(Nvml);

impl Management {
    pub(crate) fn open() -> Result<Self, String> {
        let opened = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init();
        opened.map(Self).map_err(|error| match error {
            NvmlError::LibloadingError(_) => format!("cannot load {LIBRARY}"),
            other => format!("{LIBRARY}: {other}"),
        })
    }

    /// Such as 580.159.03.
    pub(crate) fn driver_version(&self) -> Option<String> {
        self.0.sys_driver_version().ok()
    }

    pub(crate) fn link(&self, pci: PciAddress) -> Option<Link> {
        let device = self.0.device_by_pci_bus_id(pci.to_string()).ok()?;
        let link = Link {
            generation: device.current_pcie_link_gen().ok()?,
            width: device.current_pcie_link_width().ok()?,
            max_generation: device.max_pcie_link_gen().ok()?,
            max_width: device.max_pcie_link_width().ok()?,
        };
        // Zeros mean that the GPU has no PCIe link.
        (link.width > 0 && link.max_width > 0).then_some(link)
    }

    pub(crate) fn replays(&self, pci: PciAddress) -> Option<u32> {
        let device = self.0.device_by_pci_bus_id(pci.to_string()).ok()?;
        device.pcie_replay_counter().ok()
    }

    /// The state of the GPU at this address; empty if the library does not know it.
    pub(crate) fn state(&self, pci: PciAddress) -> GpuState {
        let Ok(device) = self.0.device_by_pci_bus_id(pci.to_string()) else {
            return GpuState::default();
        };
        let mps = device.mps_running_compute_processes();
        GpuState {
            link: self.link(pci),
            replays: self.replays(pci),
            compute_mode: device.compute_mode().ok(),
            persistence: device.is_in_persistent_mode().ok(),
            confidential: match device.is_cc_enabled() {
                Ok(on) => Some(on),
                // Unsupported means off.
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

    fn process(&self, info: &ProcessInfo) -> GpuProcess {
        GpuProcess {
            pid: info.pid,
            name: self.0.sys_process_name(info.pid, PROCESS_NAME_BYTES).ok(),
            memory_bytes: match info.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        }
    }
}
