//! Errors of headers.

use super::{Quoted, Shape};
use crate::Dtype;

/// An invalid header of a safetensors, index or npy file, or an invalid entry in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is shorter than the smallest valid one.
    #[error("the file is {file_bytes} bytes long; it needs at least {needed_bytes}")]
    TooShort {
        /// Length of the file.
        file_bytes: u64,
        /// Length of the smallest valid file.
        needed_bytes: u64,
    },
    /// The header length is 0.
    #[error("the header length is 0")]
    Empty,
    /// The header or index is larger than the limit.
    #[error(
        "the header length is {header_bytes} bytes, over the limit of {limit_bytes}; is it a safetensors, index or npy file?"
    )]
    TooLarge {
        /// Header length in the file.
        header_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The header extends past the end of the file.
    #[error("the header length is {header_bytes} bytes, but the whole file has {file_bytes}")]
    PastEnd {
        /// Header length in the file.
        header_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// The header is not UTF-8.
    #[error("the header is not UTF-8 at byte {at_bytes}")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        at_bytes: usize,
    },
    /// The header is not JSON.
    #[error("the header is not JSON: {reason}")]
    NotJson {
        /// The parser's error.
        reason: String,
    },
    /// The header is JSON, but not an object.
    #[error("the header is not a JSON object")]
    NotAnObject,
    /// A key occurs twice in an object.
    #[error("the key {} occurs twice", Quoted(key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// `__metadata__` is not an object of strings.
    #[error("__metadata__ is not an object of strings{}", at_key(key))]
    InvalidMetadata {
        /// The key whose value is not a string, if it is an object.
        key: Option<String>,
    },
    /// A field is missing.
    #[error("{field} is missing")]
    MissingField {
        /// Name of the field.
        field: &'static str,
    },
    /// A field, or a whole entry, has an invalid value.
    #[error("{field} is invalid: {reason}")]
    InvalidField {
        /// Name of the field.
        field: &'static str,
        /// Why it is invalid.
        reason: String,
    },
    /// An unknown element type.
    #[error("unknown dtype {}", Quoted(dtype))]
    UnknownDtype {
        /// The type in the file.
        dtype: String,
    },
    /// A shape with more dimensions than the limit.
    #[error("the shape has {dims} dimensions; the limit is {limit}")]
    TooManyDims {
        /// Dimensions in the file.
        dims: usize,
        /// The limit.
        limit: usize,
    },
    /// The number of bytes does not match type and shape.
    #[error(
        "{dtype} {} takes {expected_bytes} bytes, but the file has {found_bytes}",
        Shape(shape)
    )]
    SizeMismatch {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
        /// Bytes for that type and shape.
        expected_bytes: u64,
        /// Bytes in the file.
        found_bytes: u64,
    },
    /// The end offset is before the start offset.
    #[error("data_offsets [{start}, {end}] are reversed")]
    ReversedOffsets {
        /// The start offset.
        start: u64,
        /// The end offset.
        end: u64,
    },
    /// The data extends past the end of the file.
    #[error("ends at data byte {end}, but the file has {data_bytes} bytes of data")]
    DataPastEnd {
        /// Where the tensor ends.
        end: u64,
        /// Bytes after the header.
        data_bytes: u64,
    },
    /// Two tensors share bytes.
    #[error(
        "starts at data byte {start}, inside {}, which ends at {other_end}",
        Quoted(other)
    )]
    Overlap {
        /// Start of the tensor.
        start: u64,
        /// Name of the tensor before it.
        other: String,
        /// End of that tensor.
        other_end: u64,
    },
    /// Bytes before the tensor, or at the end of the file, belong to no tensor.
    #[error("data bytes {start}..{end}, before it or at the end, belong to no tensor")]
    Hole {
        /// Start of the bytes.
        start: u64,
        /// End of the bytes.
        end: u64,
    },
}

fn at_key(key: &Option<String>) -> String {
    key.as_deref()
        .map(|key| format!(": see {}", Quoted(key)))
        .unwrap_or_default()
}

/// An npy file that cannot be loaded, beyond what [`HeaderError`] covers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not start with the magic string.
    #[error("is not an npy file: it does not start with \\x93NUMPY")]
    Magic,
    /// An unknown version of the format.
    #[error("unsupported npy version {major}.{minor}; 1.0, 2.0 and 3.0 are supported")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// A syntax error in the header.
    #[error("invalid npy header at byte {at_bytes}: expected {expected}")]
    Header {
        /// Offset in the header.
        at_bytes: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// Big-endian elements.
    #[error(
        "has big-endian elements ({}); save it as array.astype(array.dtype.newbyteorder('<'))",
        Quoted(descr)
    )]
    BigEndian {
        /// The type in the file.
        descr: String,
    },
    /// Column-major order.
    #[error("is in Fortran order; save it as numpy.ascontiguousarray(array)")]
    FortranOrder,
    /// A structured array.
    #[error("is a structured array; save each field as an array of its own")]
    Structured,
    /// Pickled Python objects.
    #[error("contains Python objects, which are never loaded; save it as an array of numbers")]
    PythonObjects,
    /// An element type that safetensors does not have.
    #[error("unsupported element type {}", Quoted(descr))]
    UnsupportedDescr {
        /// The type in the file.
        descr: String,
    },
    /// The file name, which names the tensor, is not UTF-8.
    #[error("the file name is not UTF-8, so it cannot name the tensor")]
    NameNotUtf8,
}
