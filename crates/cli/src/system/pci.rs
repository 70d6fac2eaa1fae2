//! NVIDIA GPUs on the PCI bus, as the kernel sees them, with or without a driver.

use std::fs;
use std::path::Path;

use super::files::Root;
use crate::pcie::Link;

const DEVICES: &str = "sys/bus/pci/devices";
const NVIDIA: &str = "0x10de";

/// Display controllers, of which 3D controllers are a kind.
const DISPLAY: &str = "0x03";

/// One end of a link, at its best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Best {
    pub(crate) generation: u32,
    pub(crate) width: u32,
}

/// A GPU on the bus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PciGpu {
    /// Such as `0000:01:00.0`.
    pub(crate) address: String,
    /// NUMA node, where the kernel tells.
    pub(crate) numa_node: Option<u32>,
    /// How the link runs now.
    pub(crate) now: Option<Best>,
    /// The most that the card can do.
    pub(crate) card: Option<Best>,
    /// The most that the slot above it can do.
    pub(crate) slot: Option<Best>,
    /// How the IOMMU treats it: `identity`, `DMA`, `DMA-FQ`, …
    pub(crate) iommu: Option<String>,
}

impl PciGpu {
    /// The slot, where it can be believed: virtual machines show ports that are made up, and one
    /// that does less than the link that runs through it is such a one.
    pub(crate) fn credible_slot(&self) -> Option<Best> {
        let now = self.now?;
        self.slot
            .filter(|slot| slot.generation >= now.generation && slot.width >= now.width)
    }

    /// How the link runs, and the most that card and slot can do together.
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

/// All of them, in the order of their addresses.
pub(super) fn gpus(root: Root<'_>) -> Vec<PciGpu> {
    let names = root.names(DEVICES);
    let is_gpu = |address: &String| {
        let text = |name: &str| root.text(&format!("{DEVICES}/{address}/{name}"));
        text("vendor").as_deref() == Some(NVIDIA)
            && text("class").is_some_and(|class| class.starts_with(DISPLAY))
    };
    let gpus = names.into_iter().filter(is_gpu);
    gpus.map(|address| read(root, address)).collect()
}

/// The one at this address; nothing is known of it where there is none.
pub(super) fn read(root: Root<'_>, address: String) -> PciGpu {
    let folder = root.path(&format!("{DEVICES}/{address}"));
    let own = Root(&folder);
    // The bus's folder holds links to where the devices are: below their slots.
    let real = fs::canonicalize(&folder).ok();
    let slot = real.as_deref().and_then(Path::parent);
    PciGpu {
        // -1 stands for none.
        numa_node: own.number("numa_node"),
        now: best(own, "current"),
        card: best(own, "max"),
        slot: slot.and_then(|slot| best(Root(slot), "max")),
        iommu: own.text("iommu_group/type"),
        address,
    }
}

fn best(device: Root<'_>, which: &str) -> Option<Best> {
    let speed = device.text(&format!("{which}_link_speed"))?;
    let width: u32 = device.number(&format!("{which}_link_width"))?;
    Some(Best {
        generation: generation(&speed)?,
        width: Some(width).filter(|width| (1..=32).contains(width))?,
    })
}

/// `16.0 GT/s PCIe` is the fourth.
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
