//! What can be wrong with a header.

use crate::Dtype;
use crate::error::{Quoted, Shape};

/// What is wrong with the header of a safetensors, index or npy file, or with what it says of a tensor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// Shorter than the smallest file of its kind.
    #[error("is {file_bytes} bytes long, at least {needed_bytes} are needed")]
    TooShort {
        /// Bytes of the file.
        file_bytes: u64,
        /// Bytes of the smallest.
        needed_bytes: u64,
    },
    /// A header of no bytes.
    #[error("says that its header has 0 bytes")]
    Empty,
    /// A header, or an index, that is larger than any real one.
    #[error(
        "says that its header has {header_bytes} bytes, more than the {limit_bytes} that are allowed; is it a safetensors, index or npy file?"
    )]
    TooLarge {
        /// What the file says.
        header_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// A header that ends behind the file.
    #[error("says that its header has {header_bytes} bytes, but the file has {file_bytes} in all")]
    PastEnd {
        /// What the file says.
        header_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// A header that is not UTF-8.
    #[error("the header is not UTF-8 at byte {at_bytes}")]
    NotUtf8 {
        /// Where it stops being so.
        at_bytes: usize,
    },
    /// Not JSON.
    #[error("the header is not JSON: {reason}")]
    NotJson {
        /// What the parser says.
        reason: String,
    },
    /// JSON, but not an object.
    #[error("the header is not a JSON object")]
    NotAnObject,
    /// A key occurs twice in an object.
    #[error("the key {} occurs twice", Quoted(key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// `__metadata__` is not a map of strings.
    #[error("__metadata__ is not an object of strings{}", at_key(key))]
    BadMetadata {
        /// The key with another value, where it is an object.
        key: Option<String>,
    },
    /// A field is missing.
    #[error("{field} is missing")]
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field, or the whole entry, holds something else than it should.
    #[error("{field} cannot be understood: {reason}")]
    BadField {
        /// Its name.
        field: &'static str,
        /// Why.
        reason: String,
    },
    /// A type of elements that nobody knows.
    #[error("the dtype {} is unknown", Quoted(dtype))]
    UnknownDtype {
        /// What the file says.
        dtype: String,
    },
    /// More dimensions than any framework has.
    #[error("the shape has {dims} dimensions, at most {limit} are allowed")]
    TooManyDims {
        /// How many there are.
        dims: usize,
        /// The most that there may be.
        limit: usize,
    },
    /// The bytes of the file are not those that type and shape take.
    #[error(
        "{dtype} {} takes {expected_bytes} bytes, the file has {found_bytes}",
        Shape(shape)
    )]
    SizeMismatch {
        /// Type of the elements.
        dtype: Dtype,
        /// The shape.
        shape: Vec<u64>,
        /// What they take.
        expected_bytes: u64,
        /// What there is.
        found_bytes: u64,
    },
    /// The end comes before the start.
    #[error("data_offsets [{start}, {end}] are the wrong way round")]
    ReversedOffsets {
        /// The first.
        start: u64,
        /// The second.
        end: u64,
    },
    /// Data behind the end of the file.
    #[error("data_offsets end at {end}, but the file has {data_bytes} bytes of data")]
    DataPastEnd {
        /// Where the data should end.
        end: u64,
        /// Bytes behind the header.
        data_bytes: u64,
    },
    /// Two tensors in the same bytes.
    #[error(
        "starts at byte {start} of the data, inside of {}, which ends at {other_end}",
        Quoted(other)
    )]
    Overlap {
        /// Where it starts.
        start: u64,
        /// The tensor before it.
        other: String,
        /// Where that one ends.
        other_end: u64,
    },
    /// Bytes that belong to no tensor: before the one named, or at the end.
    #[error("bytes {start} to {end} of the data before it, or at the end, belong to no tensor")]
    Hole {
        /// Where they start.
        start: u64,
        /// Where they end.
        end: u64,
    },
}

fn at_key(key: &Option<String>) -> String {
    key.as_deref()
        .map(|key| format!(": see {}", Quoted(key)))
        .unwrap_or_default()
}
