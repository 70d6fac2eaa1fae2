//! What can be wrong with archives.

use crate::error::Quoted;
use crate::{Extent, Field};

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
        /// With what.
        how: &'static str,
    },
    /// A header whose sum is wrong: not an archive, or a damaged one.
    #[error("there is no tar header at byte {at_bytes}, or a damaged one")]
    Checksum {
        /// Where.
        at_bytes: u64,
    },
    /// A header whose size is no number, or more than 64 bits can count.
    #[error("the size in the tar header at byte {at_bytes} cannot be understood")]
    Size {
        /// Where.
        at_bytes: u64,
    },
    /// An extended header that is not as it should be.
    #[error("the pax header at byte {at_bytes} cannot be understood")]
    Pax {
        /// Where.
        at_bytes: u64,
    },
    /// A name, or an extended header, that is larger than any real one.
    #[error(
        "the tar header at byte {at_bytes} has {header_bytes} bytes, more than the {limit_bytes} that are allowed"
    )]
    ExtensionTooLarge {
        /// Where.
        at_bytes: u64,
        /// What the archive says.
        header_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// An archive that ends in the middle of something.
    #[error("the archive ends too early: what is at byte {at_bytes} is not all there")]
    Truncated {
        /// Where that starts.
        at_bytes: u64,
    },
    /// An entry that ends behind the archive.
    #[error("{} has {bytes} bytes, but only {left_bytes} are left", Quoted(entry))]
    PastEnd {
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
    /// A sample that has no file for a field.
    #[error("there is no {}", Quoted(entry))]
    Missing {
        /// What it should be named.
        entry: String,
    },
    /// A sample whose file for a field lies elsewhere in the archive.
    #[error(
        "{} does not follow the other files of its sample; pack them in the order of their names (tar --sort=name)",
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
        listed(others)
    )]
    NoSuchExtension {
        /// The extension.
        extension: String,
        /// Some that there are.
        others: Vec<String>,
    },
    /// A file that is not of the field's size.
    #[error("{} has {bytes} bytes, {}", Quoted(entry), takes(field))]
    Length {
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
