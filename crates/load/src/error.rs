//! Errors of loading, with the place that they belong to.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use pinlane_core::ErrorKind;

use super::{Fault, HeaderFault, NpyFault, TarFault};

/// A file that cannot be loaded, or a selection that cannot be made: what is wrong, and where.
///
/// ```
/// use pinlane::load::{Catalog, Fault, NpyFault};
///
/// # let path = std::env::temp_dir().join(format!("pinlane-doc-error-{}.npy", std::process::id()));
/// std::fs::write(&path, "not an array")?;
/// let error = Catalog::open(&path).unwrap_err();
/// assert_eq!(error.file(), Some(path.as_path()));
/// assert_eq!(error.fault(), &Fault::Npy(NpyFault::Magic));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    file: Option<PathBuf>,
    tensor: Option<String>,
    fault: Fault,
}

impl LoadError {
    /// The file, where it is about one.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The tensor, where it is about one.
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// What is wrong.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// The same, of this file.
    pub(super) fn of(mut self, file: &Path) -> Self {
        self.0.file = Some(file.to_owned());
        self
    }

    /// The same, of this tensor.
    pub(super) fn with_tensor(mut self, tensor: &str) -> Self {
        self.0.tensor = Some(tensor.to_owned());
        self
    }
}

impl From<Fault> for LoadError {
    fn from(fault: Fault) -> Self {
        Self(Box::new(Inner {
            file: None,
            tensor: None,
            fault,
        }))
    }
}

impl From<HeaderFault> for LoadError {
    fn from(fault: HeaderFault) -> Self {
        Fault::from(fault).into()
    }
}

impl From<NpyFault> for LoadError {
    fn from(fault: NpyFault) -> Self {
        Fault::from(fault).into()
    }
}

impl From<TarFault> for LoadError {
    fn from(fault: TarFault) -> Self {
        Fault::from(fault).into()
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.0.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(tensor) = &self.0.tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        self.0.fault.fmt(f)
    }
}

impl Error for LoadError {}

impl From<LoadError> for pinlane_core::Error {
    fn from(error: LoadError) -> Self {
        let kind = match error.fault() {
            Fault::Device { error } => error.kind(),
            Fault::Io { .. } => ErrorKind::Io,
            Fault::UnknownTensor
            | Fault::NothingMatches { .. }
            | Fault::BadGlob { .. }
            | Fault::NoRows
            | Fault::RowsOutOfRange { .. }
            | Fault::BadRank { .. }
            | Fault::BadPlan { .. }
            | Fault::BadConfig { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::InvalidData,
        };
        Self::other(kind, error)
    }
}

/// A text out of a file: quoted, control characters escaped, cut where it is long.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS_MAX: usize = 200;
        match self.0.char_indices().nth(CHARS_MAX) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}

/// A shape, cut where it is long.
pub(super) struct Shape<'a>(pub(super) &'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIMS_MAX: usize = 16;
        match self.0.get(..DIMS_MAX) {
            Some(start) if self.0.len() > DIMS_MAX => {
                write!(f, "{start:?} and {} more", self.0.len() - DIMS_MAX)
            }
            _ => write!(f, "{:?}", self.0),
        }
    }
}
