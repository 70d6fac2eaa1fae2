//! Which profile a plan is for.

use pinlane_driver::Platform;
use pinlane_model::Profile;
use pinlane_report::Origin;

use super::words::Args;
use crate::device::{self, Choice, Chosen};
use crate::output::UsageError;
use crate::profile::Named;
use crate::profile_cache;

/// How calibrations of simulated devices call their device.
const SIMULATED_NAME: &str = "Simulated GPU";

/// A profile, and where it is from.
pub(super) struct Source {
    pub(super) profile: Profile,
    pub(super) file: Option<String>,
    pub(super) origin: Origin,
}

/// That of `--profile`, or of the simulated device, or the calibration of the GPU.
pub(super) fn find(choice: &Choice, args: &Args) -> anyhow::Result<Source> {
    if let Some(named) = &args.profile {
        return Ok(source(named.clone(), false));
    }
    match device::choose(choice)? {
        Chosen::Sim(profile) => Ok(simulated(*profile)),
        Chosen::Cuda { platform, ordinal } => {
            let mut devices = platform.devices()?;
            let info = devices.swap_remove(ordinal as usize);
            let Some(name) = &info.simulated else {
                return Ok(source(profile_cache::read(&info)?, false));
            };
            // A libcuda of ours, which follows one of the profiles.
            let profile = Profile::builtin(name).ok_or_else(|| {
                let text = format!(
                    "{} is simulated by a profile that is not built in; name it with --profile",
                    info.name
                );
                UsageError::new(text)
            })?;
            Ok(simulated(profile))
        }
    }
}

fn simulated(profile: Profile) -> Source {
    source(
        Named {
            profile,
            file: None,
        },
        true,
    )
}

fn source(named: Named, is_simulated: bool) -> Source {
    let Named { profile, file } = named;
    let device = &profile.device.name;
    let is_simulated = is_simulated || device.starts_with(SIMULATED_NAME);
    Source {
        origin: Origin::computed(device, &profile.name, is_simulated),
        file: file.map(|path| path.display().to_string()),
        profile,
    }
}
