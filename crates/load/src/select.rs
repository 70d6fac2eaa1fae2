//! Which tensors of a catalog are wanted.

use super::{Catalog, Fault, Glob, LoadError, TensorInfo};

/// Which tensors are wanted: all, or those with one of these names or of one of these patterns.
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
    /// All, as long as nothing is named.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the tensor of exactly this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// With those of a pattern; see [`Glob`].
    ///
    /// # Errors
    ///
    /// [`Fault::BadGlob`] if it cannot be understood.
    pub fn glob(mut self, pattern: impl Into<String>) -> Result<Self, LoadError> {
        self.globs.push(Glob::new(pattern)?);
        Ok(self)
    }

    pub(super) fn of(&self, catalog: &Catalog) -> Result<Vec<TensorInfo>, LoadError> {
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
        let mut wanted = Vec::new();
        for tensor in tensors {
            let mut take = names.binary_search(&tensor.name()).is_ok();
            for (glob, matched) in self.globs.iter().zip(&mut matched) {
                if glob.matches(tensor.name()) {
                    (take, *matched) = (true, true);
                }
            }
            if take {
                wanted.push(tensor.clone());
            }
        }
        match matched.iter().position(|matched| !matched) {
            None => Ok(wanted),
            Some(at) => Err(LoadError::from(Fault::NothingMatches {
                pattern: self.globs[at].pattern().to_owned(),
            })),
        }
    }
}
