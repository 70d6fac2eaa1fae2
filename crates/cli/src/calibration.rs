//! Measuring the profile of a device.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::bail;
use pinlane::Device;
use pinlane_driver::DeviceInfo;
use pinlane_model::Profile;
use pinlane_report::Origin;

use crate::clock::HostClock;
use crate::device::{self, Backend};
use crate::{clock, output, profile};

/// The GPU's cached profile; if there is none, measures one and caches it.
pub(crate) fn cached_or_measured(backend: &Backend, device: &Device) -> anyhow::Result<Profile> {
    let info = device.info();
    let path = profile::cache_path(info).ok();
    if path.as_deref().is_some_and(Path::exists) {
        return Ok(profile::read_cached(info)?.profile);
    }
    let (profile, _) = measure(backend, device)?;
    if let Some(path) = path {
        let text = file_text(
            &profile,
            info,
            &device::origin(device.info()),
            &clock::utc_now(),
        );
        if let Err(error) = profile::write_cached(&path, &text) {
            output::complain(&format!("cannot cache the calibration: {error:#}"));
        }
    }
    Ok(profile)
}

/// Measures a profile. Also returns the time it took, on the clock of the measured machine.
pub(crate) fn measure(backend: &Backend, device: &Device) -> anyhow::Result<(Profile, u64)> {
    if backend.sim.is_none() {
        if let Some(profile) = &device.info().simulated {
            bail!(
                "this libcuda simulates its GPU, and its clock cannot be read through it; use \
                 --device sim:{profile}"
            );
        }
        if io::stderr().is_terminal() {
            let name = &device.info().name;
            output::complain(&format!("measuring {name}; this takes a few seconds"));
        }
    }
    let clock = HostClock::of(backend);
    let start_ns = clock.now_ns();
    let mut profile = pinlane::calibrate::calibrate(device, &|| clock.now_ns())?;
    // A simulated clock does not see host threads, so a simulated device keeps what its profile says.
    if let Some(simulated) = &backend.profile {
        profile.express = simulated.express.clone();
        profile.files = simulated.files;
    }
    Ok((profile, clock.now_ns() - start_ns))
}

/// The text of a profile file, with a header that says when and on what it was measured.
pub(crate) fn file_text(profile: &Profile, info: &DeviceInfo, origin: &Origin, at: &str) -> String {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    // A device name must not end the comment line.
    let name = info.name.replace(char::is_control, "");
    let place = info.pci.map_or(String::new(), |pci| format!(" at {pci}"));
    let cuda = info.driver_version;
    let origin = origin.line().replace(char::is_control, "");
    format!(
        "# Written by `pinlane calibrate`, version {VERSION}, on {at}.\n\
         # {name}{place}, CUDA {cuda}.\n\
         # {origin}.\n\
         {}",
        profile.to_toml()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_stay_in_their_comment() {
        let profile = Profile::builtin("h200").expect("built in");
        let info = DeviceInfo::new(0, "GPU\nname = \"broken\"\r\u{7f}");
        let origin = Origin::new(&info.name, None);
        let text = file_text(&profile, &info, &origin, "2026-11-15 09:36:59 UTC");
        assert!(text.lines().take(3).all(|line| line.starts_with("# ")));
        assert_eq!(Profile::from_toml(&text), Ok(profile));
    }
}
