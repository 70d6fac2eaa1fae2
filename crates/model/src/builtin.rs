//! The profiles that come with the crate.

use std::sync::OnceLock;

use crate::Profile;

/// Name and text of each, slowest link first, the free one last.
const BUILTIN: [(&str, &str); 5] = [
    ("pcie3-x16", include_str!("../profiles/pcie3-x16.toml")),
    ("pcie4-x16", include_str!("../profiles/pcie4-x16.toml")),
    ("pcie5-x16", include_str!("../profiles/pcie5-x16.toml")),
    ("h200", include_str!("../profiles/h200.toml")),
    ("null", include_str!("../profiles/null.toml")),
];

/// Each of them, read when it is first asked for: tests ask for one a million times.
static READ: [OnceLock<Profile>; BUILTIN.len()] = [const { OnceLock::new() }; BUILTIN.len()];

impl Profile {
    /// The built-in profile of this name.
    ///
    /// # Panics
    /// Never: the texts are part of the crate, and a test reads each of them.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        let index = BUILTIN.iter().position(|(known, _)| *known == name)?;
        let read = || Self::from_toml(BUILTIN[index].1).expect("a built-in profile is valid");
        Some(READ[index].get_or_init(read).clone())
    }

    /// Names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }
}
