//! Samples that are not in their batch.

use std::fmt;

use super::error::told;

/// A sample that was left out of its batch.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// Its number in the dataset.
    pub index: usize,
    /// Where it comes from, as the dataset says.
    pub origin: String,
    /// Why it could not be had: the error, and those that lie behind it.
    pub why: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", told(self.index, &self.origin), self.why)
    }
}
