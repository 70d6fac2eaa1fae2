//! What NVIDIA's management library (libnvidia-ml, found at run time) tells of a GPU: plain facts,
//! `None` for each that it does not tell.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::ComputeMode as Mode;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use pinlane_driver::PciAddress;

/// The name that the driver installs. The shorter one comes with development packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The longest name of a process that is asked for.
const NAME_BYTES: usize = 256;

/// A PCIe link: how it runs now, and the most that card and slot can do together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) width: u32,
    pub(crate) max_generation: u32,
    pub(crate) max_width: u32,
}

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

/// The link of the GPU at this address, where the library is there and tells.
#[allow(
    dead_code,
    reason = "for commands that compare rates with the link's limit"
)]
pub(crate) fn link(pci: PciAddress) -> Option<Link> {
    Management::open().ok()?.link(pci)
}

/// The most payload that a PCIe link moves one way, in 1e9 bytes a second; `None` for what is no
/// generation or width of PCIe.
///
/// Each lane carries 2.5, 5, 8, 16, 32, 64 thousand million bits a second from the first generation
/// to the sixth. Of those, data are 8 in 10 up to the second generation and 128 in 130 up to the
/// fifth; in the sixth, 236 of the 256 bytes of a flit (PCI Express Base Specification 6.0, 4.2.2).
/// Data travel in packets of at most 256 bytes on nearly all machines. Around each are 24 bytes:
/// framing and sequence number 4, header with a 64-bit address 16, checksum 4; acknowledgements and
/// flow control take the room of 4 more. A flit has those in the 20 bytes that are counted already,
/// so that only the header is left.
pub(crate) fn payload_limit_gb_per_s(generation: u32, width: u32) -> Option<f64> {
    const PAYLOAD_BYTES: f64 = 256.0;
    let (gbit_per_s, data_share, packet_bytes) = match generation {
        1 => (2.5, 8.0 / 10.0, 28.0),
        2 => (5.0, 8.0 / 10.0, 28.0),
        3 => (8.0, 128.0 / 130.0, 28.0),
        4 => (16.0, 128.0 / 130.0, 28.0),
        5 => (32.0, 128.0 / 130.0, 28.0),
        6 => (64.0, 236.0 / 256.0, 16.0),
        _ => return None,
    };
    if !matches!(width, 1 | 2 | 4 | 8 | 12 | 16 | 32) {
        return None;
    }
    let bytes = gbit_per_s / 8.0 * f64::from(width) * data_share;
    Some(bytes * PAYLOAD_BYTES / (PAYLOAD_BYTES + packet_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_what_encoding_and_packets_leave() {
        for (generation, width, least, most) in [
            (1, 16, 2.8, 3.7),
            (2, 16, 7.0, 7.4),
            (3, 16, 14.0, 14.5),
            (4, 16, 28.0, 29.0),
            (5, 16, 56.0, 58.0),
            (6, 16, 110.0, 112.0),
            (4, 8, 14.0, 14.5),
            (5, 1, 3.5, 3.6),
        ] {
            let rate = payload_limit_gb_per_s(generation, width).expect("such links are");
            assert!(
                (least..most).contains(&rate),
                "{generation} x{width}: {rate}"
            );
        }
    }

    #[test]
    fn there_are_no_other_links() {
        for (generation, width) in [(0, 16), (7, 16), (5, 0), (5, 3), (u32::MAX, u32::MAX)] {
            assert_eq!(payload_limit_gb_per_s(generation, width), None);
        }
    }

    #[test]
    fn an_address_without_a_gpu_has_no_link() {
        let nowhere = PciAddress {
            domain: 0xffff,
            bus: 0xff,
            device: 0x1f,
        };
        assert_eq!(link(nowhere), None);
    }
}
