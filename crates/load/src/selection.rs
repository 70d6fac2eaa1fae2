//! Selecting tensors of a catalog by name or pattern.

use std::collections::HashSet;

use crate::{Catalog, Glob, LoadError, LoadErrorKind, TensorInfo};

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
    names: Vec<String>,
    globs: Vec<Glob>,
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
    ///
    /// [`LoadErrorKind::InvalidGlob`] for an invalid pattern.
    pub fn glob(mut self, pattern: impl Into<String>) -> Result<Self, LoadError> {
        self.globs.push(Glob::new(pattern)?);
        Ok(self)
    }

    pub(crate) fn of(&self, catalog: &Catalog) -> Result<Vec<TensorInfo>, LoadError> {
        let tensors = catalog.tensors();
        if self.names.is_empty() && self.globs.is_empty() {
            return Ok(tensors.to_vec());
        }
        let mut selected = HashSet::new();
        for name in &self.names {
            selected.insert(catalog.tensor(name)?.name());
        }
        for glob in &self.globs {
            let names = tensors.iter().map(TensorInfo::name);
            let mut matches = names.filter(|name| glob.matches(name)).peekable();
            if matches.peek().is_none() {
                return Err(LoadError::from(LoadErrorKind::NoMatch {
                    pattern: glob.pattern().to_owned(),
                }));
            }
            selected.extend(matches);
        }
        let selected = tensors
            .iter()
            .filter(|tensor| selected.contains(tensor.name()));
        Ok(selected.cloned().collect())
    }
}
