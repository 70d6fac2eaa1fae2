//! Profiles by the names that users give them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use pinlane_model::Profile;

/// Far more than any profile has.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A profile, and the file that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) profile: Profile,
    /// `None` for a built-in one.
    pub(crate) file: Option<PathBuf>,
}

/// The built-in profile of this name, or the one in the file of this name.
pub(crate) fn named(name: &str) -> Result<Named, String> {
    if let Some(profile) = Profile::builtin(name) {
        let file = None;
        return Ok(Named { profile, file });
    }
    let path = Path::new(name);
    if !path.exists() {
        let names: Vec<_> = Profile::builtin_names().collect();
        return Err(format!(
            "no profile and no file is called `{name}`; the profiles are {}",
            names.join(", ")
        ));
    }
    let profile = read(path)?;
    let file = Some(path.to_owned());
    Ok(Named { profile, file })
}

/// The profile in a file. Errors name the file, and the field where one is wrong.
pub(crate) fn read(path: &Path) -> Result<Profile, String> {
    let name = path.display();
    let text =
        read_text(path).map_err(|error| format!("the profile `{name}` cannot be read: {error}"))?;
    Profile::from_toml(&text).map_err(|error| format!("the profile `{name}` is not valid: {error}"))
}

/// A file that never ends is not read to its end.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("too long to be a profile"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_before_files() {
        let found = named("pcie3-x16").expect("built in");
        assert_eq!(
            (found.profile.name.as_str(), found.file),
            ("pcie3-x16", None)
        );
        let error = named("no-such").expect_err("neither");
        assert!(
            error.contains("no-such") && error.contains("h200"),
            "{error}"
        );
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = named("/dev/zero").expect_err("not a profile");
        assert!(error.contains("too long"), "{error}");
    }
}
