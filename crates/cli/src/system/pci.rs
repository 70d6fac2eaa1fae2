//! NVIDIA GPUs on the PCI bus as the kernel sees them, with or without a driver; links and their limits.

use std::fs;
use std::path::Path;

use super::SystemRoot;

const DEVICES: &str = "sys/bus/pci/devices";
const NVIDIA: &str = "0x10de";

/// The class of display controllers, which includes 3D controllers.
const DISPLAY: &str = "0x03";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkSpeed {
    pub(crate) generation: u32,
    pub(crate) width: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PciGpu {
    /// Such as `0000:01:00.0`.
    pub(crate) address: String,
    pub(crate) numa_node: Option<u32>,
    pub(crate) now: Option<LinkSpeed>,
    pub(crate) card: Option<LinkSpeed>,
    pub(crate) slot: Option<LinkSpeed>,
    /// The mode of the IOMMU: `identity`, `DMA`, `DMA-FQ`, …
    pub(crate) iommu: Option<String>,
}

impl PciGpu {
    /// The slot, unless it claims to be slower than the link through it: virtual machines make up ports.
    pub(crate) fn credible_slot(&self) -> Option<LinkSpeed> {
        let now = self.now?;
        self.slot
            .filter(|slot| slot.generation >= now.generation && slot.width >= now.width)
    }

    /// The current speed of the link, and the maximum that card and slot have in common.
    pub(crate) fn link(&self) -> Option<Link> {
        let (now, card) = (self.now?, self.card?);
        let slot = self.credible_slot().unwrap_or(card);
        Some(Link {
            generation: now.generation,
            width: now.width,
            max_generation: card.generation.min(slot.generation),
            max_width: card.width.min(slot.width),
        })
    }
}

/// All GPUs, by address.
pub(crate) fn gpus(root: SystemRoot<'_>) -> Vec<PciGpu> {
    let names = root.names(DEVICES);
    let is_gpu = |address: &String| {
        let text = |name: &str| root.text(&format!("{DEVICES}/{address}/{name}"));
        text("vendor").as_deref() == Some(NVIDIA)
            && text("class").is_some_and(|class| class.starts_with(DISPLAY))
    };
    let gpus = names.into_iter().filter(is_gpu);
    gpus.map(|address| read(root, address)).collect()
}

/// The GPU at this address. If there is none, every field is `None`.
pub(crate) fn read(root: SystemRoot<'_>, address: String) -> PciGpu {
    let folder = root.path(&format!("{DEVICES}/{address}"));
    let own = SystemRoot(&folder);
    // The folder holds symbolic links to the devices, which are below their slots.
    let real = fs::canonicalize(&folder).ok();
    let slot = real.as_deref().and_then(Path::parent);
    PciGpu {
        // -1, which does not parse, means none.
        numa_node: own.number("numa_node"),
        now: link_speed(own, "current"),
        card: link_speed(own, "max"),
        slot: slot.and_then(|slot| link_speed(SystemRoot(slot), "max")),
        iommu: own.text("iommu_group/type"),
        address,
    }
}

fn link_speed(device: SystemRoot<'_>, which: &str) -> Option<LinkSpeed> {
    let speed = device.text(&format!("{which}_link_speed"))?;
    let width: u32 = device.number(&format!("{which}_link_width"))?;
    Some(LinkSpeed {
        generation: generation(&speed)?,
        width: Some(width).filter(|width| (1..=32).contains(width))?,
    })
}

/// `16.0 GT/s PCIe` is generation 4.
fn generation(speed: &str) -> Option<u32> {
    match speed.split(' ').next()? {
        "2.5" => Some(1),
        "5.0" | "5" => Some(2),
        "8.0" | "8" => Some(3),
        "16.0" | "16" => Some(4),
        "32.0" | "32" => Some(5),
        "64.0" | "64" => Some(6),
        _ => None,
    }
}

/// The current speed of a PCIe link, and the maximum that card and slot have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) generation: u32,
    pub(crate) width: u32,
    pub(crate) max_generation: u32,
    pub(crate) max_width: u32,
}

/// The maximum payload rate of a PCIe link in one direction, in 1e9 bytes per second. `None` for an unknown
/// generation or width.
///
/// Of a lane's bits, 8 in 10 are data up to generation 2, 128 in 130 up to generation 5, and in generation 6
/// 236 of the 256 bytes of a flit (PCI Express Base Specification 6.0, 4.2.2). Nearly all machines use packets of
/// at most 256 bytes of payload. Each adds framing and sequence number (4 bytes), a header with a 64-bit address
/// (16), a checksum (4), and about 4 for acknowledgements and flow control; in a flit only the header.
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
    fn payload_rates_are_plausible() {
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
            let rate = payload_limit_gb_per_s(generation, width).expect("a valid link");
            let plausible = (least..most).contains(&rate);
            assert!(plausible, "{generation} x{width}: {rate}");
        }
    }

    #[test]
    fn other_links_do_not_exist() {
        for (generation, width) in [(0, 16), (7, 16), (5, 0), (5, 3), (u32::MAX, u32::MAX)] {
            assert_eq!(payload_limit_gb_per_s(generation, width), None);
        }
    }
}
