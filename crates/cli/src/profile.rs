//! Profiles by built-in name or file name, and the calibrated profiles in the cache folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use pinlane::calibrate::profile_name;
use pinlane_driver::DeviceInfo;
use pinlane_model::Profile;

use crate::input_error::UsageError;
use crate::output_file;

/// Far more than any profile needs.
const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, Debug)]
pub(crate) struct ProfileFile {
    pub(crate) profile: Profile,
    /// `None` if built in.
    pub(crate) file: Option<PathBuf>,
}

/// Finds a built-in profile, or reads a profile file.
pub(crate) fn named(name: &str) -> Result<ProfileFile, String> {
    if let Some(profile) = Profile::builtin(name) {
        let file = None;
        return Ok(ProfileFile { profile, file });
    }
    if !Path::new(name).exists() {
        let names: Vec<_> = Profile::builtin_names().collect();
        let names = names.join(", ");
        return Err(format!(
            "there is no profile or file `{name}`; the built-in profiles are {names}"
        ));
    }
    read(name.into())
}

/// Reads a profile file. Errors name the file and the bad field.
fn read(path: PathBuf) -> Result<ProfileFile, String> {
    let name = path.display();
    let text =
        read_text(&path).map_err(|error| format!("cannot read profile `{name}`: {error}"))?;
    let profile = Profile::from_toml(&text);
    let profile = profile.map_err(|error| format!("profile `{name}` is not valid: {error}"))?;
    let file = Some(path);
    Ok(ProfileFile { profile, file })
}

/// Reads a bounded part, because the file may be endless (`/dev/zero`).
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err(io::Error::other("too large for a profile")),
    }
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
    read(path).map_err(|error| UsageError(invalid(error)))
}

/// Writes the profile of a GPU, replacing an earlier one.
pub(crate) fn write_cached(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create folder {}", folder.display()))?;
    }
    output_file::write_text(path, text)
}

/// The folder of the profiles. Relative paths in the environment are ignored.
fn folder<S: Into<OsString>>(variable: impl Fn(&str) -> Option<S>) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(variable(name)?.into());
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("pinlane/profiles"))
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
    fn names_before_files() {
        let found = named("pcie3-x16").expect("built in");
        assert_eq!((&*found.profile.name, found.file), ("pcie3-x16", None));
        let error = named("no-such").expect_err("neither");
        assert!(error.contains("no-such"), "{error}");
        assert!(error.contains("h200"), "{error}");
    }

    #[test]
    fn an_endless_file_is_rejected() {
        let error = named("/dev/zero").expect_err("not a profile");
        assert!(error.contains("too large"), "{error}");
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
