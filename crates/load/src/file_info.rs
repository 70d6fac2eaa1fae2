//! One file of a catalog, and how to open it safely.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{LoadError, LoadErrorKind};

/// Format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Many tensors after a JSON header.
    Safetensors,
    /// One numpy array.
    Npy,
}

/// A file of a [`Catalog`](crate::Catalog).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) stamp: FileStamp,
    pub(crate) data_start: u64,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) unlisted: usize,
}

impl FileInfo {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Length of the file when it was opened.
    pub fn len_bytes(&self) -> u64 {
        self.stamp.len_bytes
    }

    /// Offset of the data, right after the header.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// The file's own metadata (`__metadata__`).
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Number of tensors that the catalog leaves out, because the index does not list them.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Opens the file again for reading.
    ///
    /// # Errors
    /// [`LoadErrorKind::Io`], or [`LoadErrorKind::FileChanged`] if it is no longer the same file.
    pub fn open(&self) -> Result<File, LoadError> {
        let file = open_without_blocking(&self.path)
            .map_err(|kind| LoadError::from(kind).with_file(&self.path))?;
        self.check(&file)?;
        Ok(file)
    }

    /// Checks that an open file is still the one the catalog was made from: same inode, same
    /// length, not modified. Check before reading, and again afterwards.
    ///
    /// # Errors
    /// [`LoadErrorKind::FileChanged`] if it is not, [`LoadErrorKind::Io`] if that cannot be told.
    pub fn check(&self, file: &File) -> Result<(), LoadError> {
        let kind = match metadata(file) {
            Ok(now) if FileStamp::of(&now) == self.stamp => return Ok(()),
            Ok(_) => LoadErrorKind::FileChanged,
            Err(kind) => kind,
        };
        Err(LoadError::from(kind).with_file(&self.path))
    }
}

/// Identifies one version of a file: changes when the file is modified or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileStamp {
    pub(crate) len_bytes: u64,
    device: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            len_bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

/// Does not wait for a writer if the path has become a pipe. No effect on regular files.
fn open_without_blocking(path: &Path) -> Result<File, LoadErrorKind> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    opened.map_err(|error| LoadErrorKind::io("open", &error))
}

fn metadata(file: &File) -> Result<Metadata, LoadErrorKind> {
    let metadata = file.metadata();
    metadata.map_err(|error| LoadErrorKind::io("read", &error))
}

/// Opens a regular file; refuses anything else, such as pipes.
pub(crate) fn open_regular(path: &Path) -> Result<(File, FileStamp), LoadErrorKind> {
    let named = fs::metadata(path).map_err(|error| LoadErrorKind::io("open", &error))?;
    if !named.is_file() {
        return Err(LoadErrorKind::NotAFile);
    }
    let file = open_without_blocking(path)?;
    let metadata = metadata(&file)?;
    match metadata.is_file() {
        true => Ok((file, FileStamp::of(&metadata))),
        false => Err(LoadErrorKind::NotAFile),
    }
}

/// Read bytes that were there when the file was opened.
pub(crate) fn read_exact(file: &File, target: &mut [u8], start: u64) -> Result<(), LoadErrorKind> {
    file.read_exact_at(target, start)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LoadErrorKind::FileChanged,
            _ => LoadErrorKind::io("read", &error),
        })
}
