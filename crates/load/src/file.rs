//! One file of a catalog.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Fault, LoadError};

/// How a file is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Many tensors behind a header in JSON.
    Safetensors,
    /// One array of numpy's.
    Npy,
}

/// A file of a [`Catalog`](super::Catalog).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) stamp: Stamp,
    pub(super) data_start: u64,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) unlisted: usize,
}

impl FileInfo {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is laid out.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How long it was when it was opened.
    pub fn len_bytes(&self) -> u64 {
        self.stamp.len_bytes
    }

    /// Where the header ends and the data begins.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// What its writer said about it (`__metadata__`).
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Tensors that the file has and the catalog has not, since the index that led to the file
    /// does not name them here.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Open it again for reading.
    ///
    /// # Errors
    ///
    /// [`Fault::Io`], or [`Fault::Changed`] if it is not what it was.
    pub fn open(&self) -> Result<File, LoadError> {
        let file = open_at_once(&self.path)
            .map_err(|error| LoadError::from(Fault::io("open", &error)).of(&self.path))?;
        self.check(&file)?;
        Ok(file)
    }

    /// Whether an open file is still the one that the catalog was made from: the same file, of the
    /// same length, not written to. Worth a question before reading, and another one behind it.
    ///
    /// # Errors
    ///
    /// [`Fault::Changed`] if it is not, [`Fault::Io`] if the system does not say.
    pub fn check(&self, file: &File) -> Result<(), LoadError> {
        let now = file.metadata().map_err(|error| Fault::io("read", &error));
        let fault = match now.map(|now| Stamp::of(&now) == self.stamp) {
            Ok(true) => return Ok(()),
            Ok(false) => Fault::Changed,
            Err(fault) => fault,
        };
        Err(LoadError::from(fault).of(&self.path))
    }
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stamp {
    pub(super) len_bytes: u64,
    device: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            len_bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

/// Open without waiting: what was a file may be a pipe by now, which would wait for a writer. For a
/// file that makes no difference.
fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Open a plain file. Anything else is not opened at all: a pipe would wait for a writer.
pub(super) fn open_plain(path: &Path) -> Result<(File, Stamp), Fault> {
    let before = fs::metadata(path).map_err(|error| Fault::io("open", &error))?;
    if !before.is_file() {
        return Err(Fault::NotAFile);
    }
    let file = open_at_once(path).map_err(|error| Fault::io("open", &error))?;
    let metadata = file.metadata().map_err(|error| Fault::io("read", &error))?;
    match metadata.is_file() {
        true => Ok((file, Stamp::of(&metadata))),
        false => Err(Fault::NotAFile),
    }
}
