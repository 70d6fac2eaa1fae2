//! Calibrations, one file a GPU, in the user's cache folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pinlane::calibrate::profile_name;
use pinlane_driver::DeviceInfo;

use crate::file;
use crate::output::UsageError;
use crate::profile::{self, Named};

/// Where the calibration of a GPU is kept.
///
/// # Errors
/// If the environment names no folder.
pub(crate) fn path(info: &DeviceInfo) -> anyhow::Result<PathBuf> {
    let folder = folder(|name| std::env::var_os(name)).context(
        "neither XDG_CACHE_HOME nor HOME is an absolute path, so there is no place for calibrations",
    )?;
    Ok(folder.join(file_name(info)))
}

/// The calibration of a GPU.
///
/// # Errors
/// [`UsageError`] with the remedy, if there is none or if it cannot be used.
pub(crate) fn read(info: &DeviceInfo) -> anyhow::Result<Named> {
    let remedy = match info.ordinal {
        0 => "`pinlane calibrate`".to_owned(),
        ordinal => format!("`pinlane --device cuda:{ordinal} calibrate`"),
    };
    let path = path(info)
        .map_err(|error| UsageError::new(format!("{error:#}; name a profile with --profile")))?;
    if !path.exists() {
        return Err(UsageError::new(format!(
            "{} is not calibrated yet ({} is not there); run {remedy}, or name a profile with \
             --profile",
            info.name,
            path.display()
        ))
        .into());
    }
    match profile::read(&path) {
        Ok(profile) => Ok(Named {
            profile,
            file: Some(path),
        }),
        Err(error) => Err(UsageError::new(format!(
            "{}; run {remedy} to write it anew",
            error.trim_end()
        ))
        .into()),
    }
}

/// Keeps a calibration, in place of an earlier one.
///
/// # Errors
/// With the name of the file, which then is as it was.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    file::write(path, |out| out.write_all(text.as_bytes()))
}

/// The user's folder for calibrations. Paths that are not absolute do not count.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("pinlane").join("profiles"))
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
    use pinlane_driver::PciAddress;

    use super::*;

    #[test]
    fn one_file_a_gpu() {
        let mut info = DeviceInfo::new(1, "NVIDIA H200 (SXM)");
        assert_eq!(file_name(&info), "nvidia-h200-sxm-device1.toml");
        info.pci = Some(PciAddress {
            domain: 0,
            bus: 0x1b,
            device: 0,
        });
        assert_eq!(file_name(&info), "nvidia-h200-sxm-0000-1b-00.0.toml");
        info.name = "../../GPU/漢".to_owned();
        assert_eq!(file_name(&info), "gpu-0000-1b-00.0.toml");
        info.name = "漢".to_owned();
        assert_eq!(file_name(&info), "gpu-0000-1b-00.0.toml");
    }

    #[test]
    fn the_folder_follows_the_environment() {
        for (variables, path) in [
            (
                &[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")][..],
                Some("/c/pinlane/profiles"),
            ),
            (&[("HOME", "/h")], Some("/h/.cache/pinlane/profiles")),
            (
                &[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")],
                Some("/h/.cache/pinlane/profiles"),
            ),
            (&[("XDG_CACHE_HOME", ""), ("HOME", "")], None),
            (&[], None),
        ] {
            let variable = |name: &str| {
                let mut all = variables.iter();
                all.find(|(known, _)| *known == name)
                    .map(|(_, value)| OsString::from(value))
            };
            assert_eq!(folder(variable).as_deref(), path.map(Path::new));
        }
    }
}
