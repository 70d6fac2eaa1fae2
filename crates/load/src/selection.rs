//! Selecting tensors of a catalog by name or pattern.

use crate::{Glob, LoadError};

/// Selects tensors by name or pattern; without any, all tensors.
///
/// ```
/// use pinlane::load::Selection;
///
/// let all = Selection::new();
/// let some = Selection::new().name("lm_head.weight").glob("model.layers.0.*")?;
/// assert_ne!(all, some);
/// # Ok::<(), pinlane::load::LoadError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    pub(crate) names: Vec<String>,
    pub(crate) globs: Vec<Glob>,
}

impl Selection {
    /// Selects all tensors, until a name or a pattern is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the tensor with exactly this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Adds all tensors whose names match a pattern; see [`Glob`].
    ///
    /// # Errors
    /// [`LoadErrorKind::InvalidGlob`](crate::LoadErrorKind::InvalidGlob) for an invalid pattern.
    pub fn glob(mut self, pattern: impl Into<String>) -> Result<Self, LoadError> {
        self.globs.push(Glob::new(pattern)?);
        Ok(self)
    }
}
