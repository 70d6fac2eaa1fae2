//! Calibrated profiles: measuring a device, and the cache folder of what was measured.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane::calibrate::profile_name;
use pinlane_driver::DeviceInfo;
use pinlane_model::Profile;
use pinlane_report::Origin;

use crate::clock::HostClock;
use crate::device::{self, Backend};
use crate::input_error::UsageError;
use crate::profile::{self, ProfileFile};
use crate::{clock, output, output_file};

/// The GPU's cached profile; if there is none, measures one and caches it.
pub(crate) fn cached_or_measured(backend: &Backend, device: &Device) -> anyhow::Result<Profile> {
    let info = device.info();
    let path = cache_path(info).ok();
    if path.as_deref().is_some_and(Path::exists) {
        return Ok(read_cached(info)?.profile);
    }
    let (profile, _) = measure(backend, device)?;
    if let Some(path) = path {
        let text = file_text(
            &profile,
            info,
            &device::origin(device.info()),
            &clock::utc_now(),
        );
        if let Err(error) = write_cached(&path, &text) {
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

/// The profile file of a GPU. Fails if the environment names no cache folder.
pub(crate) fn cache_path(info: &DeviceInfo) -> anyhow::Result<PathBuf> {
    let folder = folder(|name| std::env::var_os(name))
        .context("there is no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path")?;
    Ok(folder.join(file_name(info)))
}

/// Reads the profile of a GPU. Fails if it is missing or invalid.
pub(crate) fn read_cached(info: &DeviceInfo) -> Result<ProfileFile, UsageError> {
    let remedy = match info.ordinal {
        0 => "`pinlane calibrate`".to_owned(),
        ordinal => format!("`pinlane --device cuda:{ordinal} calibrate`"),
    };
    let path =
        cache_path(info).map_err(|error| UsageError(format!("{error:#}; pass --profile")))?;
    if !path.exists() {
        return Err(UsageError(format!(
            "{} is not calibrated: there is no {}; run {remedy} or pass --profile",
            info.name,
            path.display()
        )));
    }
    let invalid = |error: String| format!("{}; run {remedy} to replace it", error.trim_end());
    profile::read(path).map_err(|error| UsageError(invalid(error)))
}

/// Writes the profile of a GPU, replacing an earlier one.
pub(crate) fn write_cached(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create folder {}", folder.display()))?;
    }
    output_file::write_text(path, text)
}

/// The folder of the profiles.
fn folder<S: Into<OsString>>(variable: impl Fn(&str) -> Option<S>) -> Option<PathBuf> {
    Some(cache_root(variable)?.join("profiles"))
}

/// The folder of everything that the tool caches. Relative paths in the environment are ignored.
pub(crate) fn cache_root<S: Into<OsString>>(
    variable: impl Fn(&str) -> Option<S>,
) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(variable(name)?.into());
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("pinlane"))
}

/// A name such as `nvidia-h200-0000-01-00.0.toml`.
fn file_name(info: &DeviceInfo) -> String {
    let place = match info.pci {
        Some(pci) => pci.to_string().replace(':', "-"),
        None => format!("device{}", info.ordinal),
    };
    format!("{}-{place}.toml", profile_name(&info.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinlane_driver::PciAddress;

    #[test]
    fn device_names_stay_in_their_comment() {
        let profile = Profile::builtin("h200").expect("built in");
        let info = DeviceInfo::new(0, "GPU\nname = \"broken\"\r\u{7f}");
        let origin = Origin::new(&info.name, None);
        let text = file_text(&profile, &info, &origin, "2026-11-15 09:36:59 UTC");
        assert!(text.lines().take(3).all(|line| line.starts_with("# ")));
        assert_eq!(Profile::from_toml(&text), Ok(profile));
    }

    #[test]
    fn one_file_per_gpu() {
        let mut info = DeviceInfo::new(1, "NVIDIA H200 (SXM)");
        assert_eq!(file_name(&info), "nvidia-h200-sxm-device1.toml");
        let (domain, bus, device) = (0, 0x1b, 0);
        info.pci = Some(PciAddress {
            domain,
            bus,
            device,
        });
        assert_eq!(file_name(&info), "nvidia-h200-sxm-0000-1b-00.0.toml");
        info.name = "../../GPU/漢".to_owned();
        assert_eq!(file_name(&info), "gpu-0000-1b-00.0.toml");
        info.name = "漢".to_owned();
        assert_eq!(file_name(&info), "gpu-0000-1b-00.0.toml");
    }

    #[test]
    fn the_folder_follows_the_environment() {
        const XDG: &str = "XDG_CACHE_HOME";
        let (home, in_home) = (("HOME", "/h"), Some("/h/.cache/pinlane/profiles"));
        for (variables, path) in [
            (&[(XDG, "/c"), home][..], Some("/c/pinlane/profiles")),
            (&[home], in_home),
            (&[(XDG, "relative"), home], in_home),
            (&[(XDG, ""), ("HOME", "")], None),
            (&[], None),
        ] {
            let found = folder(crate::test_variables(variables));
            assert_eq!(found.as_deref(), path.map(Path::new));
        }
    }
}
