//! Errors of tar archives.

use super::Quoted;
use crate::{Field, FieldShape};

/// What is wrong with a tar archive, or with a sample in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarError {
    /// A folder without archives.
    #[error("the folder has no .tar file")]
    NoArchives,
    /// A compressed archive.
    #[error("is compressed ({how}); unpack it, since samples are read in any order")]
    Compressed {
        /// The compression.
        how: &'static str,
    },
    /// A header with a wrong checksum: not an archive, or a damaged one.
    #[error("there is no valid tar header at byte {at_bytes}")]
    Checksum {
        /// Position of the header.
        at_bytes: u64,
    },
    /// A header whose size is not a number, or overflows 64 bits.
    #[error("the tar header at byte {at_bytes} has an invalid size")]
    Size {
        /// Position of the header.
        at_bytes: u64,
    },
    /// An invalid pax header.
    #[error("the pax header at byte {at_bytes} is invalid")]
    Pax {
        /// Position of the header.
        at_bytes: u64,
    },
    /// A name or a pax header that is larger than any real one.
    #[error(
        "the tar header at byte {at_bytes} has {header_bytes} bytes; the limit is {limit_bytes}"
    )]
    ExtensionTooLarge {
        /// Position of the header.
        at_bytes: u64,
        /// Its size.
        header_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// An archive that ends in the middle of an entry.
    #[error("the archive is truncated: it ends inside the entry at byte {at_bytes}")]
    Truncated {
        /// Where the incomplete part starts.
        at_bytes: u64,
    },
    /// An entry that ends past the end of the archive.
    #[error("{} has {bytes} bytes, but only {left_bytes} are left", Quoted(entry))]
    PastEnd {
        /// Its name.
        entry: String,
        /// Its size.
        bytes: u64,
        /// Bytes left in the archive.
        left_bytes: u64,
    },
    /// A sparse file, stored without its holes.
    #[error("{} is a sparse file; pack it without --sparse", Quoted(entry))]
    Sparse {
        /// Its name.
        entry: String,
    },
    /// Two entries for one field of one sample.
    #[error("{} occurs twice in one sample", Quoted(entry))]
    Duplicate {
        /// Its name.
        entry: String,
    },
    /// A sample without a file for a field.
    #[error("there is no {}", Quoted(entry))]
    Missing {
        /// The expected name.
        entry: String,
    },
    /// A sample whose file for a field is elsewhere in the archive.
    #[error(
        "{} does not follow the other files of its sample; sort the files by name (tar --sort=name)",
        Quoted(entry)
    )]
    Scattered {
        /// Its name.
        entry: String,
    },
    /// An extension that no file of any sample has.
    #[error(
        "no sample has a file with the extension {}; there are {}",
        Quoted(extension),
        quoted_list(others)
    )]
    NoSuchExtension {
        /// The extension.
        extension: String,
        /// Some of the extensions in the archive.
        others: Vec<String>,
    },
    /// A file whose size does not fit its field.
    #[error(
        "{} has {bytes} bytes, but the field {}",
        Quoted(entry),
        expected(field)
    )]
    Length {
        /// Its name.
        entry: String,
        /// Its size.
        bytes: u64,
        /// The field.
        field: Field,
    },
}

fn expected(field: &Field) -> String {
    let (name, dtype) = (Quoted(field.name()), field.dtype());
    match field.shape() {
        FieldShape::Fixed(shape) => format!("{name} is {dtype} {shape:?}"),
        FieldShape::Variable { at_most } => format!("{name} is at most {at_most} of {dtype}"),
    }
}

fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| Quoted(name).to_string()).collect();
    quoted.join(", ")
}
