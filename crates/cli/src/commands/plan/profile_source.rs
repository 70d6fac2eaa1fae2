//! The profile to plan for.

use pinlane_driver::Platform;
use pinlane_model::Profile;
use pinlane_report::Origin;

use super::args::Args;
use crate::device::{Backend, DeviceChoice};
use crate::output::UsageError;
use crate::profile::ProfileFile;
use crate::profile_cache;

/// How profiles that were measured on a simulated device name it.
const SIMULATED_NAME: &str = "Simulated GPU";

/// A profile and its origin.
pub(super) struct ProfileSource {
    pub(super) profile: Profile,
    pub(super) file: Option<String>,
    pub(super) origin: Origin,
}

impl ProfileSource {
    /// The profile of `--profile`, of the simulated device, or of the calibrated GPU.
    pub(super) fn find(choice: &DeviceChoice, args: &Args) -> anyhow::Result<Self> {
        if let Some(named) = &args.profile {
            return Ok(Self::new(named.clone(), false));
        }
        let (platform, ordinal) = match choice.open_for_timing()? {
            Backend::Sim { profile, .. } => return Ok(Self::simulated(*profile)),
            Backend::Cuda { platform, ordinal } => (platform, ordinal),
        };
        let info = platform.devices()?.swap_remove(ordinal as usize);
        let Some(name) = &info.simulated else {
            return Ok(Self::new(profile_cache::read(&info)?, false));
        };
        // A simulated libcuda reports only the name of its profile.
        let profile = Profile::builtin(name).ok_or_else(|| {
            let name = &info.name;
            UsageError::new(format!(
                "the profile of {name} is not built in; pass --profile"
            ))
        })?;
        Ok(Self::simulated(profile))
    }

    fn simulated(profile: Profile) -> Self {
        let file = None;
        Self::new(ProfileFile { profile, file }, true)
    }

    fn new(ProfileFile { profile, file }: ProfileFile, is_simulated: bool) -> Self {
        let device = &profile.device.name;
        let is_simulated = is_simulated || device.starts_with(SIMULATED_NAME);
        Self {
            origin: Origin::computed(device, &profile.name, is_simulated),
            file: file.map(|path| path.display().to_string()),
            profile,
        }
    }
}
