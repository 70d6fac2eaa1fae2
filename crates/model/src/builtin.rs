//! The profiles that come with the crate.

use crate::Profile;

/// Name and text of each, slowest link first, the free one last.
const BUILTIN: [(&str, &str); 5] = [
    ("pcie3-x16", include_str!("../profiles/pcie3-x16.toml")),
    ("pcie4-x16", include_str!("../profiles/pcie4-x16.toml")),
    ("pcie5-x16", include_str!("../profiles/pcie5-x16.toml")),
    ("h200", include_str!("../profiles/h200.toml")),
    ("null", include_str!("../profiles/null.toml")),
];

impl Profile {
    /// The built-in profile of this name.
    ///
    /// # Panics
    /// Never: the texts are part of the crate, and a test reads each of them.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
        Some(Self::from_toml(text).expect("a built-in profile is valid"))
    }

    /// Names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }
}
