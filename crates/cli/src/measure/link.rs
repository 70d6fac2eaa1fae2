//! What the link to a GPU can carry.

use pinlane::DeviceInfo;
use pinlane_report::{LinkBasis, LinkLimit};

use crate::doctor::facts;
use crate::pcie::payload_limit_gb_per_s;

/// The limit of the link as it runs right now; none where the system does not tell. A GPU slows its
/// link down while it idles: ask behind copies.
pub(crate) fn limit(info: &DeviceInfo) -> Option<LinkLimit> {
    let pci = info.pci.filter(|_| info.simulated.is_none())?;
    let link = facts::link(pci)?;
    let gb_per_s = payload_limit_gb_per_s(link.generation, link.width)?;
    Some(LinkLimit {
        gb_per_s,
        basis: LinkBasis::Pcie {
            generation: link.generation,
            width: link.width,
        },
    })
}
