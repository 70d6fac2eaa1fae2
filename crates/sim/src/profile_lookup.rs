//! Profiles by name.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pinlane_model::{Profile, ProfileError};

/// Far more than any profile has.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Returns the built-in profile of this name, or reads the profile from the file of this name.
///
/// ```
/// assert_eq!(pinlane_sim::profile_named("h200")?.device.multiprocessors, 132);
/// # Ok::<(), pinlane_sim::ProfileNameError>(())
/// ```
///
/// # Errors
/// [`ProfileNameError`], with the built-in names if there is neither such a profile nor a file.
pub fn profile_named(name: &str) -> Result<Profile, ProfileNameError> {
    if let Some(profile) = Profile::builtin(name) {
        return Ok(profile);
    }
    let path = PathBuf::from(name);
    if !path.exists() {
        let name = name.to_owned();
        return Err(ProfileNameError::NotFound { name });
    }
    match read(&path) {
        Ok(text) => {
            Profile::from_toml(&text).map_err(|error| ProfileNameError::Invalid { path, error })
        }
        Err(error) => Err(ProfileNameError::Unreadable { path, error }),
    }
}

/// Reads a file, but not an endless one.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("too long to be a profile"));
    }
    Ok(text)
}

/// Why there is no profile of a given name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileNameError {
    /// Neither a built-in profile nor a file.
    #[error(
        "no profile and no file is named `{name}`; the built-in profiles are {}",
        Profile::builtin_names().collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read profile `{}`: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not a valid profile.
    #[error("profile `{}` is invalid: {error}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ProfileError,
    },
}
