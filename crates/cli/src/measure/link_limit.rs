//! What the link to a GPU can carry.

use pinlane::DeviceInfo;
use pinlane_model::Profile;
use pinlane_report::{LinkBasis, LinkLimit};

use crate::doctor::facts;
use crate::pcie::payload_limit_gb_per_s;

/// The limit of the link as it runs right now, or as the profile of a simulated device has it; none
/// where nobody tells. A GPU slows its link down while it idles: ask behind copies.
pub(crate) fn limit(info: &DeviceInfo, profile: Option<&Profile>) -> Option<LinkLimit> {
    if let Some(profile) = profile {
        return by_profile(profile);
    }
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

/// Large copies of pinned memory are as fast as the link.
fn by_profile(profile: &Profile) -> Option<LinkLimit> {
    let rates = [&profile.h2d, &profile.d2h].map(|costs| costs.pinned.bytes_per_s);
    let bytes_per_s = rates.into_iter().max().filter(|rate| *rate > 0)?;
    Some(LinkLimit {
        gb_per_s: bytes_per_s as f64 / 1e9,
        basis: LinkBasis::Profile,
    })
}
