//! One archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::TarField;
use super::blocks::Blocks;
use super::entries::Entries;
use super::index::{Index, Place};
use crate::file_info::{FileStamp, open_regular};
use crate::{LoadError, LoadErrorKind};

/// An archive whose samples are known.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    stamp: FileStamp,
    /// Kept open, or opened each time.
    file: Option<File>,
    pub(super) index: Index,
}

impl Archive {
    pub(super) fn open(path: &Path, fields: &[TarField], keep: bool) -> Result<Self, LoadError> {
        let open = || {
            let (file, stamp) = open_regular(path)?;
            let entries = Entries::new(Blocks::new(&file, stamp.len_bytes));
            let archive = Self {
                path: path.to_owned(),
                stamp,
                index: Index::read(entries, fields)?,
                file: keep.then_some(file),
            };
            Ok(archive)
        };
        open().map_err(|fault: LoadErrorKind| LoadError::from(fault).with_file(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Do something with the file, with a look before and one behind whether it is what it was.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&File) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let opened;
        let file = match &self.file {
            Some(file) => {
                self.check(file)?;
                file
            }
            None => {
                let (file, stamp) = open_regular(&self.path).map_err(|fault| self.error(fault))?;
                self.same(Ok(stamp))?;
                opened = file;
                &opened
            }
        };
        let done = work(file)?;
        self.check(file)?;
        Ok(done)
    }

    fn check(&self, file: &File) -> Result<(), LoadError> {
        let now = file
            .metadata()
            .map_err(|error| LoadErrorKind::io("read", &error));
        self.same(now.map(|now| FileStamp::of(&now)))
    }

    /// Read the data of an entry.
    pub(super) fn read(
        &self,
        file: &File,
        place: Place,
        target: &mut [u8],
    ) -> Result<(), LoadError> {
        debug_assert_eq!(target.len() as u64, place.bytes);
        file.read_exact_at(target, place.at.get())
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.error(LoadErrorKind::FileChanged),
                _ => self.error(LoadErrorKind::io("read", &error)),
            })
    }

    /// A fault of this archive.
    pub(super) fn error(&self, fault: impl Into<LoadErrorKind>) -> LoadError {
        LoadError::from(fault.into()).with_file(&self.path)
    }

    fn same(&self, stamp: Result<FileStamp, LoadErrorKind>) -> Result<(), LoadError> {
        match stamp {
            Ok(stamp) if stamp == self.stamp => Ok(()),
            Ok(_) => Err(self.error(LoadErrorKind::FileChanged)),
            Err(fault) => Err(self.error(fault)),
        }
    }
}
