//! Calibrated profiles in the user's cache folder, one file per GPU.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pinlane::calibrate::profile_name;
use pinlane_driver::DeviceInfo;

use crate::output::UsageError;
use crate::output_file;
use crate::profile::{self, ProfileFile};

/// The profile file of a GPU. Fails if the environment names no cache folder.
pub(crate) fn path(info: &DeviceInfo) -> anyhow::Result<PathBuf> {
    let folder = folder(|name| std::env::var_os(name))
        .context("there is no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path")?;
    Ok(folder.join(file_name(info)))
}

/// Reads the profile of a GPU. Fails with a [`UsageError`] if it is missing or invalid.
pub(crate) fn read(info: &DeviceInfo) -> anyhow::Result<ProfileFile> {
    let remedy = match info.ordinal {
        0 => "`pinlane calibrate`".to_owned(),
        ordinal => format!("`pinlane --device cuda:{ordinal} calibrate`"),
    };
    let path = path(info).map_err(|error| UsageError::new(format!("{error:#}; pass --profile")))?;
    if !path.exists() {
        return Err(UsageError::new(format!(
            "{} is not calibrated: there is no {}; run {remedy} or pass --profile",
            info.name,
            path.display()
        ))
        .into());
    }
    match profile::read(&path) {
        Ok(profile) => Ok(ProfileFile {
            profile,
            file: Some(path),
        }),
        Err(error) => {
            Err(UsageError::new(format!("{}; run {remedy} to replace it", error.trim_end())).into())
        }
    }
}

/// Writes the profile of a GPU, replacing an earlier one.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create folder {}", folder.display()))?;
    }
    output_file::write_text(path, text)
}

/// The folder of the profiles. Relative paths in the environment are ignored.
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
    fn one_file_per_gpu() {
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
