//! What can be wrong with a file, a selection or a plan.

use std::io;
use std::path::PathBuf;

use super::error::{Quoted, Shape};
use super::{Dtype, Extent, Field, OtherFormat};

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

    // Headers.
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
    EmptyHeader,
    /// A header, or an index, that is larger than any real one.
    #[error(
        "says that its header has {header_bytes} bytes, more than the {limit_bytes} that are allowed; is it a safetensors, index or npy file?"
    )]
    HeaderTooLarge {
        /// What the file says.
        header_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// A header that ends behind the file.
    #[error("says that its header has {header_bytes} bytes, but the file has {file_bytes} in all")]
    HeaderPastEnd {
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

    // One tensor.
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
    PastEnd {
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

    // Arrays in npy files.
    /// The file does not begin as npy files do.
    #[error("is not an npy file: it does not begin with \\x93NUMPY")]
    NpyMagic,
    /// A version of the format that nobody knows.
    #[error("is of npy version {major}.{minor}; 1.0, 2.0 and 3.0 are known")]
    NpyVersion {
        /// Before the point.
        major: u8,
        /// Behind the point.
        minor: u8,
    },
    /// The header is not the dictionary that it should be.
    #[error("the npy header is wrong at byte {at_bytes}: {expected} expected")]
    NpyHeader {
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
        error: Box<crate::Error>,
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
    /// A folder without archives.
    #[error("the folder has no .tar file")]
    NoArchives,
    /// A compressed archive.
    #[error("is compressed ({how}); unpack it, since samples are read in any order")]
    TarCompressed {
        /// With what.
        how: &'static str,
    },
    /// A header whose sum is wrong: not an archive, or a damaged one.
    #[error("there is no tar header at byte {at_bytes}, or a damaged one")]
    TarChecksum {
        /// Where.
        at_bytes: u64,
    },
    /// A header whose size is no number, or more than 64 bits can count.
    #[error("the size in the tar header at byte {at_bytes} cannot be understood")]
    TarSize {
        /// Where.
        at_bytes: u64,
    },
    /// An extended header that is not as it should be.
    #[error("the pax header at byte {at_bytes} cannot be understood")]
    TarPax {
        /// Where.
        at_bytes: u64,
    },
    /// A name, or an extended header, that is larger than any real one.
    #[error(
        "the tar header at byte {at_bytes} has {header_bytes} bytes, more than the {limit_bytes} that are allowed"
    )]
    TarExtensionTooLarge {
        /// Where.
        at_bytes: u64,
        /// What the archive says.
        header_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// An archive that ends in the middle of something.
    #[error("the archive ends too early: what is at byte {at_bytes} is not all there")]
    TarTruncated {
        /// Where that starts.
        at_bytes: u64,
    },
    /// An entry that ends behind the archive.
    #[error("{} has {bytes} bytes, but only {left_bytes} are left", Quoted(entry))]
    TarPastEnd {
        /// Its name.
        entry: String,
        /// What the archive says.
        bytes: u64,
        /// What there is.
        left_bytes: u64,
    },
    /// A file with holes that were left out.
    #[error(
        "{} is stored as a sparse file; pack it without --sparse",
        Quoted(entry)
    )]
    TarSparse {
        /// Its name.
        entry: String,
    },
    /// Two entries for one field of one sample.
    #[error("{} occurs twice in one sample", Quoted(entry))]
    TarDuplicate {
        /// Its name.
        entry: String,
    },
    /// A sample that has no file for a field.
    #[error("there is no {}", Quoted(entry))]
    TarMissing {
        /// What it should be named.
        entry: String,
    },
    /// A sample whose file for a field lies elsewhere in the archive.
    #[error(
        "{} does not follow the other files of its sample; pack them in the order of their names (tar --sort=name)",
        Quoted(entry)
    )]
    TarScattered {
        /// Its name.
        entry: String,
    },
    /// An extension that no file of any sample has.
    #[error(
        "no sample has a file with the extension {}; there are {}",
        Quoted(extension),
        listed(others)
    )]
    TarNoSuchExtension {
        /// The extension.
        extension: String,
        /// Some that there are.
        others: Vec<String>,
    },
    /// A file that is not of the field's size.
    #[error("{} has {bytes} bytes, {}", Quoted(entry), takes(field))]
    TarLength {
        /// Its name.
        entry: String,
        /// Its size.
        bytes: u64,
        /// The field.
        field: Field,
    },
}

/// What a field has room for.
fn takes(field: &Field) -> String {
    let (name, dtype) = (Quoted(field.name()), field.dtype());
    match field.extent() {
        Extent::Fixed(shape) => format!("but the field {name} is {dtype} {shape:?}"),
        Extent::Variable { at_most } => {
            format!("but the field {name} is at most {at_most} of {dtype}")
        }
    }
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| Quoted(name).to_string()).collect();
    quoted.join(", ")
}

fn at_key(key: &Option<String>) -> String {
    key.as_deref()
        .map(|key| format!(": see {}", Quoted(key)))
        .unwrap_or_default()
}

impl Fault {
    pub(super) fn device(error: impl Into<crate::Error>) -> Self {
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
