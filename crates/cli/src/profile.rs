//! Profiles by built-in name or file name.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pinlane_model::Profile;

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
pub(crate) fn read(path: PathBuf) -> Result<ProfileFile, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
