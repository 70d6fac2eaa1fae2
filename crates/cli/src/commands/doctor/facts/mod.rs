//! What there is to know, gathered in one place, so that checks need no machine.

pub(crate) mod cpus;
pub(crate) mod files;
pub(crate) mod gpu;
pub(crate) mod host;
pub(crate) mod pci;

use std::path::Path;

use pinlane::Budget;
use pinlane_driver::PciAddress;

use self::files::Root;
use self::gpu::Gpus;
use self::host::Host;
use crate::device::Choice;
use crate::nvml::Management;
use crate::pcie::Link;

/// Everything that checks look at.
pub(crate) struct Facts {
    pub(crate) host: Host,
    pub(crate) gpus: Gpus,
}

impl Facts {
    /// Those of this machine and the devices that were chosen.
    pub(crate) fn gather(choice: &Choice) -> Self {
        let root = Root(Path::new("/"));
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        let budget = Budget::process().limit_bytes();
        let budget = budget.map_err(|error| error.to_string());
        let host = Host::read(root, &variable, budget);
        let gpus = Gpus::find(choice, &host, root);
        Self { host, gpus }
    }
}

/// Memory that this process can still get, where the system tells.
pub(crate) fn available_bytes() -> Option<u64> {
    host::available_bytes(Root(Path::new("/")))
}

/// The link of the GPU at this address, as the driver's library tells it or else the kernel. A GPU
/// slows its link down while it idles: ask behind copies.
pub(crate) fn link(pci: PciAddress) -> Option<Link> {
    let of_library = Management::open()
        .ok()
        .and_then(|library| library.link(pci));
    of_library.or_else(|| pci::read(Root(Path::new("/")), pci.to_string()).link())
}

#[cfg(test)]
mod tests {
    use super::*;

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
