//! Selecting tensors of a catalog by name or pattern.

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
        let mut names = Vec::with_capacity(self.names.len());
        for name in &self.names {
            names.push(catalog.tensor(name)?.name());
        }
        names.sort_unstable();
        let mut matched = vec![false; self.globs.len()];
        let mut selected = Vec::new();
        for tensor in tensors {
            let mut take = names.binary_search(&tensor.name()).is_ok();
            for (glob, matched) in self.globs.iter().zip(&mut matched) {
                if glob.matches(tensor.name()) {
                    (take, *matched) = (true, true);
                }
            }
            if take {
                selected.push(tensor.clone());
            }
        }
        match self.globs.iter().zip(matched).find(|(_, matched)| !matched) {
            None => Ok(selected),
            Some((glob, _)) => Err(LoadError::from(LoadErrorKind::NoMatch {
                pattern: glob.pattern().to_owned(),
            })),
        }
    }
}
