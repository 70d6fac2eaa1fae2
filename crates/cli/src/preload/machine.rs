//! The machine that a program ran on.

use pinlane_model::Profile;
use pinlane_report::Origin;

use crate::calibrated_profiles;
use crate::device::{self, DeviceChoice};

/// The device that the program ran on, as far as it is known here, and its profile, if it is calibrated.
pub(crate) fn machine(device: &DeviceChoice) -> (Origin, Option<Profile>) {
    if let DeviceChoice::Sim(named) = device {
        let profile = named.profile.clone();
        let origin = Origin::new(&profile.device.name, Some(profile.name.clone()));
        return (origin, Some(profile));
    }
    let info = match device::cuda(0) {
        Ok(_) => DeviceChoice::Cuda(0).info(),
        Err(_) => None,
    };
    let Some(info) = info else {
        return (Origin::new("the program's GPU", None), None);
    };
    let profile = calibrated_profiles::read_cached(&info).ok();
    (device::origin(&info), profile.map(|found| found.profile))
}
