//! What this machine says about itself: files of the kernel, the PCI bus, and the driver's management
//! library.

pub(crate) mod files;
pub(crate) mod nvml;
pub(crate) mod pci;

use pinlane::memory::ControlGroups;
use pinlane_driver::PciAddress;

use files::SystemRoot;
use nvml::Management;
use pci::Link;

/// Memory that this process can still allocate: what the system has available, or what its control group
/// leaves. `u64::MAX` if unknown.
pub(crate) fn available_bytes() -> u64 {
    let root = SystemRoot::real();
    let Some(meminfo) = root.text("proc/meminfo") else {
        return u64::MAX;
    };
    let system = files::kib_field(&meminfo, "MemAvailable");
    let group = ControlGroups::find(root.0).memory();
    let group = group.map(|memory| memory.headroom_bytes);
    system.into_iter().chain(group).min().unwrap_or(u64::MAX)
}

/// The part of the available memory that a command may take, leaving some for the system.
pub(crate) fn usable_bytes(available_bytes: u64) -> u64 {
    available_bytes / 16 * 15
}

/// The link of the GPU at this address, from the management library or else from the kernel. An idle GPU
/// slows its link down: call this right after copies.
pub(crate) fn link(pci: PciAddress) -> Option<Link> {
    let library = Management::open().ok();
    let link = library.and_then(|library| library.link(pci));
    link.or_else(|| pci::read(SystemRoot::real(), pci.to_string()).link())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_gpu_has_no_link() {
        let (domain, bus, device) = (0xffff, 0xff, 0x1f);
        assert_eq!(
            link(PciAddress {
                domain,
                bus,
                device
            }),
            None
        );
    }
}
