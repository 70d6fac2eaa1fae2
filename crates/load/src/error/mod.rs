//! Errors of loading: what went wrong, in which file and tensor.

mod header;
mod other_format;
mod tar;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pinlane_core::ErrorKind;

pub use header::{HeaderError, NpyError};
pub use other_format::OtherFormat;
pub use tar::TarError;

use crate::Dtype;

/// A file that cannot be loaded, or an invalid selection, plan or setting.
///
/// ```
/// use pinlane::load::{Catalog, LoadErrorKind, NpyError};
///
/// # let path = std::env::temp_dir().join(format!("pinlane-doc-error-{}.npy", std::process::id()));
/// std::fs::write(&path, "not an array")?;
/// let error = Catalog::open(&path).unwrap_err();
/// assert_eq!(error.file(), Some(path.as_path()));
/// assert_eq!(error.kind(), &LoadErrorKind::Npy(NpyError::Magic));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    file: Option<PathBuf>,
    tensor: Option<String>,
    kind: LoadErrorKind,
}

/// What went wrong. The [`LoadError`] around it names the file and the tensor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    // Files and folders.
    /// A system call failed.
    #[error("cannot {action}: {reason}")]
    Io {
        /// The failed action: open, read, list.
        action: &'static str,
        /// Kind of the system's error.
        kind: io::ErrorKind,
        /// The system's number of the error (`errno`), if it has one.
        code: Option<i32>,
        /// Text of the system's error.
        reason: String,
    },
    /// Neither a file nor a folder.
    #[error("is neither a file nor a folder")]
    NotAFile,
    /// A folder without weights.
    #[error("the folder has no .safetensors, .safetensors.index.json or .npy file")]
    EmptyFolder,
    /// A folder with more than one index file.
    #[error("the folder has several index files, {first:?} and {second:?}; name one of them")]
    MultipleIndexes {
        /// The first one by name.
        first: PathBuf,
        /// The second one.
        second: PathBuf,
    },
    /// The file was modified or replaced since it was opened.
    #[error("the file has changed since it was opened")]
    FileChanged,
    /// A file in another format, recognized by its first bytes.
    #[error("is {found}; {}", found.remedy())]
    OtherFormat {
        /// The format.
        found: OtherFormat,
    },

    // Formats.
    /// An invalid header, or an invalid entry in it.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// An invalid npy file.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// An invalid tar archive.
    #[error(transparent)]
    Tar(#[from] TarError),

    // Tensors.
    /// The size in bytes overflows 64 bits.
    #[error("the size of {dtype} {} overflows 64 bits", Shape(shape))]
    SizeOverflow {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A tensor of sub-byte elements that ends inside a byte.
    #[error("{dtype} {} does not end on a byte boundary", Shape(shape))]
    PartialByte {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
    },
    /// Two files have a tensor with this name.
    #[error("is also in {other:?}; name the files to load")]
    DuplicateTensor {
        /// The other file.
        other: PathBuf,
    },

    // Index files.
    /// The index names a file outside its folder.
    #[error("the index names {}, which is outside its folder", Quoted(target))]
    OutsideFolder {
        /// The name in the index.
        target: String,
    },
    /// The index names a file that does not exist.
    #[error("the index names {}, which does not exist", Quoted(target))]
    IndexedFileMissing {
        /// The name in the index.
        target: String,
    },
    /// The index names a tensor that its file does not have.
    #[error("the index says it is in {}, but it is not", Quoted(target))]
    IndexedTensorMissing {
        /// The name of the file in the index.
        target: String,
    },

    // Selections.
    /// No tensor has this name.
    #[error("there is no tensor with this name")]
    UnknownTensor,
    /// No tensor matches the pattern.
    #[error("no tensor matches {}", Quoted(pattern))]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// An invalid pattern.
    #[error("invalid pattern {}: {reason}", Quoted(pattern))]
    InvalidGlob {
        /// The pattern.
        pattern: String,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// A scalar has no rows.
    #[error("a scalar has no rows")]
    NoRows,
    /// Rows past the end of the tensor.
    #[error("rows {start}..{end} are out of range; there are {rows} rows")]
    RowsOutOfRange {
        /// First row requested.
        start: u64,
        /// End of the rows requested (exclusive).
        end: u64,
        /// Rows of the tensor.
        rows: u64,
    },
    /// Rows of sub-byte elements that start or end inside a byte.
    #[error(
        "rows {start}..{end} of {dtype} {} do not start and end on a byte boundary",
        Shape(shape)
    )]
    RowsSplitByte {
        /// First row.
        start: u64,
        /// End of the rows (exclusive).
        end: u64,
        /// Type of the elements.
        dtype: Dtype,
        /// Shape of the whole tensor.
        shape: Vec<u64>,
    },
    /// A rank that is not less than the world size.
    #[error("rank {rank} is out of range for {world} ranks")]
    InvalidRank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        world: u64,
    },

    // Plans and loading.
    /// An invalid setting.
    #[error("{field}: {reason}")]
    InvalidConfig {
        /// The setting.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The total size overflows the address space.
    #[error("the total size overflows 64 bits")]
    TotalOverflow,
    /// A type that tensors cannot be converted to.
    #[error("cannot convert to {}; choose F16, BF16, F32 or F64", to.name())]
    NotAFloat {
        /// The type.
        to: Dtype,
    },
    /// A call to the device, or work on it, failed.
    #[error("{error}")]
    Device {
        /// The device's error.
        error: Box<pinlane_core::Error>,
    },
    /// Memory given for a tensor has another size than the tensor in it.
    #[error("the given memory has {found} bytes instead of {expected}")]
    TargetSize {
        /// Bytes of the given memory.
        found: usize,
        /// Bytes of the tensor, after conversion.
        expected: usize,
    },
    /// Memory given for a tensor was used on another stream than the one that the load was given.
    #[error("the given device memory is ordered by another stream than the load's")]
    TargetStream,
    /// The file system does not support direct I/O.
    #[error("the file system does not support direct I/O ({reason}); use buffered reads")]
    DirectIoUnsupported {
        /// Text of the system's error.
        reason: String,
    },
    /// The tensor on the device differs from its file.
    #[error("byte {at} is {found:#04x} on the device but {expected:#04x} in the file")]
    Mismatch {
        /// Offset of the first different byte in the tensor on the device.
        at: u64,
        /// The byte on the device.
        found: u8,
        /// The byte in the file.
        expected: u8,
    },
    /// A reader thread panicked.
    #[error("a reader thread panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },

    // Datasets.
    /// A dataset without fields.
    #[error("the dataset has no fields, and so no samples")]
    NoFields,
    /// Arrays with different numbers of rows.
    #[error(
        "has {samples} rows, but {} has {other_samples}; every array needs one row per sample",
        Quoted(other)
    )]
    SamplesDiffer {
        /// Rows of this array.
        samples: u64,
        /// Name of the array it was compared with.
        other: String,
        /// Rows of that array.
        other_samples: u64,
    },
    /// A tensor from another catalog.
    #[error("is not a tensor of this catalog")]
    OtherCatalog,
    /// A variable field for an array, whose rows all have one shape.
    #[error("is a variable field, but rows of an array have a fixed shape")]
    NotFixed,
    /// An array in memory with too few or too many bytes.
    #[error("has {bytes} bytes instead of {samples} rows of {row_bytes} bytes")]
    ArrayLength {
        /// Bytes of the array.
        bytes: usize,
        /// Rows it should have.
        samples: usize,
        /// Bytes of one row.
        row_bytes: usize,
    },
}

impl LoadError {
    /// The file the error is about, if any.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The tensor the error is about, if any.
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// What went wrong.
    pub fn kind(&self) -> &LoadErrorKind {
        &self.0.kind
    }

    pub(crate) fn with_file(mut self, file: &Path) -> Self {
        self.0.file = Some(file.to_owned());
        self
    }

    pub(crate) fn with_tensor(mut self, tensor: &str) -> Self {
        self.0.tensor = Some(tensor.to_owned());
        self
    }
}

impl LoadErrorKind {
    pub(crate) fn device(error: pinlane_core::Error) -> Self {
        let error = Box::new(error);
        Self::Device { error }
    }

    pub(crate) fn io(action: &'static str, error: &io::Error) -> Self {
        Self::Io {
            action,
            kind: error.kind(),
            code: error.raw_os_error(),
            reason: error.to_string(),
        }
    }
}

impl<K: Into<LoadErrorKind>> From<K> for LoadError {
    fn from(kind: K) -> Self {
        Self(Box::new(Inner {
            file: None,
            tensor: None,
            kind: kind.into(),
        }))
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
        self.0.kind.fmt(f)
    }
}

impl Error for LoadError {}

impl From<LoadError> for pinlane_core::Error {
    fn from(error: LoadError) -> Self {
        use LoadErrorKind as Kind;
        let kind = match error.kind() {
            Kind::Device { error } => error.kind(),
            Kind::Io { .. } => ErrorKind::Io,
            Kind::UnknownTensor
            | Kind::NoMatch { .. }
            | Kind::InvalidGlob { .. }
            | Kind::NoRows
            | Kind::RowsOutOfRange { .. }
            | Kind::InvalidRank { .. }
            | Kind::TargetSize { .. }
            | Kind::TargetStream
            | Kind::NotAFloat { .. }
            | Kind::InvalidConfig { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::InvalidData,
        };
        Self::other(kind, error)
    }
}

/// Untrusted text: quoted, control characters escaped, truncated.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, more) = truncated(self.0);
        write!(f, "{start:?}{more}")
    }
}

/// The start of a text, and an ellipsis if there is more.
pub(crate) fn truncated(text: &str) -> (&str, &'static str) {
    const CHARS_MAX: usize = 200;
    match text.char_indices().nth(CHARS_MAX) {
        None => (text, ""),
        Some((end, _)) => (&text[..end], "…"),
    }
}

/// A shape, truncated.
pub(crate) struct Shape<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIMS_MAX: usize = 16;
        match self.0.split_at_checked(DIMS_MAX) {
            Some((start, rest @ [_, ..])) => write!(f, "{start:?} and {} more", rest.len()),
            _ => write!(f, "{:?}", self.0),
        }
    }
}
