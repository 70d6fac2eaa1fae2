//! The limit of the link to a GPU.

use pinlane::DeviceInfo;
use pinlane_model::Profile;
use pinlane_report::{LinkBasis, LinkLimit};

use crate::system;
use crate::system::pcie::payload_limit_gb_per_s;

/// The limit of the link at its current speed, or that of a simulated device by its profile. `None` if
/// unknown. An idle GPU slows its link down: call this right after copies.
pub(crate) fn link_limit(info: &DeviceInfo, profile: Option<&Profile>) -> Option<LinkLimit> {
    if let Some(profile) = profile {
        return profile_limit(profile);
    }
    let pci = info.pci.filter(|_| info.simulated.is_none())?;
    let link = system::link(pci)?;
    Some(LinkLimit {
        gb_per_s: payload_limit_gb_per_s(link.generation, link.width)?,
        basis: LinkBasis::Pcie {
            generation: link.generation,
            width: link.width,
        },
    })
}

/// Large copies of pinned memory run at the link's rate.
fn profile_limit(profile: &Profile) -> Option<LinkLimit> {
    let rates = [&profile.h2d, &profile.d2h].map(|costs| costs.pinned.bytes_per_s);
    let bytes_per_s = rates.into_iter().max().filter(|rate| *rate > 0)?;
    Some(LinkLimit {
        gb_per_s: bytes_per_s as f64 / 1e9,
        basis: LinkBasis::Profile,
    })
}
