//! Simulated machines by name.

use std::path::Path;

use pinlane_model::Profile;

use crate::Sim;

impl Sim {
    /// The built-in profile of this name, or the one in this file.
    pub fn named(profile: &str) -> Result<Self, String> {
        if let Some(profile) = Profile::builtin(profile) {
            return Ok(Self::new(profile));
        }
        if !Path::new(profile).exists() {
            let names: Vec<_> = Profile::builtin_names().collect();
            return Err(format!(
                "no such profile or file; built in are {}",
                names.join(", ")
            ));
        }
        let text = std::fs::read_to_string(profile).map_err(|error| error.to_string())?;
        Profile::from_toml(&text)
            .map(Self::new)
            .map_err(|error| error.to_string())
    }
}
