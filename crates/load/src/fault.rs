//! What can be wrong with a file, a selection or a plan.

use std::io;
use std::path::PathBuf;

use super::error::{Quoted, Shape};
use super::{Dtype, HeaderFault, NpyFault, OtherFormat, TarFault};

/// What is wrong. The [`LoadError`](super::LoadError) around it says with which file and tensor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    // Files and folders.
    /// The system refused a call.
    #[error("cannot {action}: {reason}")]
    Io {
        /// What was tried: open, read, list, map.
        action: &'static str,
        /// The kind of error.
        kind: io::ErrorKind,
        /// The system's words.
        reason: String,
    },
    /// Neither a file nor a folder.
    #[error("is neither a file nor a folder")]
    NotAFile,
    /// A folder with nothing to load.
    #[error("the folder has no .safetensors, .safetensors.index.json or .npy file")]
    NothingHere,
    /// A folder with several index files.
    #[error("the folder has several index files, {first:?} and {second:?}; name one of them")]
    SeveralIndexes {
        /// One of them.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// The file is not the one that was opened first, or was written to since.
    #[error("the file has changed since it was opened")]
    Changed,
    /// Another kind of file, by how it begins.
    #[error("{}", found.says())]
    OtherFormat {
        /// What it is.
        found: OtherFormat,
    },

    // Formats.
    /// The header of the file, or what it says of a tensor.
    #[error(transparent)]
    Header(#[from] HeaderFault),
    /// An npy file.
    #[error(transparent)]
    Npy(#[from] NpyFault),
    /// A tar archive.
    #[error(transparent)]
    Tar(#[from] TarFault),

    // Tensors.
    /// The size does not fit 64 bits.
    #[error("{dtype} {} is more than 64 bits can count", Shape(shape))]
    SizeOverflow {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
    },
    /// Elements of less than a byte, and their end is inside of a byte.
    #[error("{dtype} {} does not end on a byte", Shape(shape))]
    PartialByte {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
    },
    /// Two files have a tensor of this name.
    #[error("is in {other:?} too; name the files to load")]
    DuplicateTensor {
        /// The other file.
        other: PathBuf,
    },

    // Index files.
    /// The index names a file outside of its folder.
    #[error(
        "the index names {}, which is not inside of the index's folder",
        Quoted(target)
    )]
    OutsideFolder {
        /// What it names.
        target: String,
    },
    /// The index names a file that is not there.
    #[error("the index names {}, which is not there", Quoted(target))]
    IndexedFileMissing {
        /// What it names.
        target: String,
    },
    /// The index says that a file has a tensor that it does not have.
    #[error("the index says that {} has it, but it does not", Quoted(target))]
    IndexedTensorMissing {
        /// The file that should have it.
        target: String,
    },

    // Selections.
    /// No tensor of this name.
    #[error("there is no tensor of this name")]
    UnknownTensor,
    /// A pattern that matches nothing.
    #[error("no tensor matches {}", Quoted(pattern))]
    NothingMatches {
        /// The pattern.
        pattern: String,
    },
    /// A pattern that cannot be understood.
    #[error("the pattern {} cannot be understood: {reason}", Quoted(pattern))]
    BadGlob {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: &'static str,
    },
    /// A scalar has no rows.
    #[error("a scalar has no rows")]
    NoRows,
    /// Rows that are not there.
    #[error("has rows 0..{rows}, not {start}..{end}")]
    RowsOutOfRange {
        /// The first that was asked for.
        start: u64,
        /// Behind the last.
        end: u64,
        /// How many there are.
        rows: u64,
    },
    /// Rows of elements of less than a byte that do not start or end on a byte.
    #[error(
        "rows {start}..{end} of {dtype} {} do not start and end on a byte",
        Shape(shape)
    )]
    RowsSplitByte {
        /// The first.
        start: u64,
        /// Behind the last.
        end: u64,
        /// Type of the elements.
        dtype: Dtype,
        /// Shape of the whole.
        shape: Vec<u64>,
    },
    /// A rank that is not in the world.
    #[error("there is no rank {rank} in a world of {world}")]
    BadRank {
        /// The rank.
        rank: u64,
        /// How many there are.
        world: u64,
    },

    // Plans.
    /// A setting of the plan is not possible.
    #[error("{field} {reason}")]
    BadPlan {
        /// The field of the options.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The tensors together are more than 64 bits can count.
    #[error("the selected tensors together are more than 64 bits can count")]
    TooMuch,
    /// A type that numbers cannot be turned into.
    #[error("cannot convert to {}; choose F16, BF16, F32 or F64", to.name())]
    NotAFloat {
        /// The type.
        to: Dtype,
    },

    // Loading.
    /// The device refused a call, is full, or work on it failed.
    #[error("{error}")]
    Device {
        /// What it said.
        error: Box<pinlane_core::Error>,
    },
    /// The file system cannot be read past its cache.
    #[error("the file system cannot read directly ({reason}); read buffered")]
    NoDirectReads {
        /// The system's words.
        reason: String,
    },
    /// A setting is not possible.
    #[error("{field}: {reason}")]
    BadConfig {
        /// The setting.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// What is on the device is not what is in the file.
    #[error("byte {at} on the device is {found:#04x}, in the file {expected:#04x}")]
    NotTheSame {
        /// The first byte of the tensor that differs, as it should lie on the device.
        at: u64,
        /// What it is.
        found: u8,
        /// What it should be.
        expected: u8,
    },
    /// A thread that reads ended with a panic.
    #[error("a reading thread panicked: {says}")]
    Panicked {
        /// Its words.
        says: String,
    },

    // Datasets.
    /// A dataset without fields.
    #[error("has no fields, so that there are no samples")]
    NoFields,
    /// Arrays with different numbers of rows.
    #[error(
        "has {samples} rows, but {} has {other_samples}; each array has one row a sample",
        Quoted(other)
    )]
    SamplesDiffer {
        /// Its rows.
        samples: u64,
        /// The array that it was compared with.
        other: String,
        /// Rows of that one.
        other_samples: u64,
    },
    /// A tensor of another catalog.
    #[error("is not a tensor of this catalog")]
    OtherCatalog,
    /// A variable field where rows have one shape.
    #[error("is a variable field; rows of an array have one shape")]
    NotFixed,
    /// Bytes are missing or left over in an array in memory.
    #[error("has {bytes} bytes, which are not {samples} rows of {row_bytes} bytes")]
    ArrayLength {
        /// Bytes of the array.
        bytes: usize,
        /// How many rows it should have.
        samples: usize,
        /// Bytes of each.
        row_bytes: usize,
    },
}

impl Fault {
    pub(super) fn device(error: impl Into<pinlane_core::Error>) -> Self {
        Self::Device {
            error: Box::new(error.into()),
        }
    }

    pub(super) fn io(action: &'static str, error: &io::Error) -> Self {
        Self::Io {
            action,
            kind: error.kind(),
            reason: error.to_string(),
        }
    }
}
