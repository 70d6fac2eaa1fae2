//! What can be wrong with an npy file alone.

use crate::error::Quoted;

/// What is wrong with an npy file, beside what can be wrong with any [header](crate::HeaderFault).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyFault {
    /// The file does not begin as npy files do.
    #[error("is not an npy file: it does not begin with \\x93NUMPY")]
    Magic,
    /// A version of the format that nobody knows.
    #[error("is of npy version {major}.{minor}; 1.0, 2.0 and 3.0 are known")]
    Version {
        /// Before the point.
        major: u8,
        /// Behind the point.
        minor: u8,
    },
    /// The header is not the dictionary that it should be.
    #[error("the npy header is wrong at byte {at_bytes}: {expected} expected")]
    Header {
        /// Where.
        at_bytes: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// Big-endian numbers.
    #[error(
        "holds big-endian numbers ({}); save it as array.astype(array.dtype.newbyteorder('<'))",
        Quoted(descr)
    )]
    BigEndian {
        /// What the file says.
        descr: String,
    },
    /// Columns first.
    #[error("is in Fortran order; save it as numpy.ascontiguousarray(array)")]
    FortranOrder,
    /// Records with fields.
    #[error("holds records, not numbers; save each field as an array of its own")]
    Structured,
    /// Python objects.
    #[error("holds Python objects, which are never loaded; save it as an array of numbers")]
    PythonObjects,
    /// A type that safetensors has no name for.
    #[error("holds elements of type {}, which cannot be loaded", Quoted(descr))]
    UnsupportedDescr {
        /// What the file says.
        descr: String,
    },
    /// The file's name, which is the tensor's, is not UTF-8.
    #[error("the file's name is not UTF-8, so that the tensor has no name")]
    NameNotUtf8,
}
