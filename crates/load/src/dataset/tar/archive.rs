//! Archive files: opening, indexing and reading them.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, thread};

use pinlane_core::internal::lock;

use super::TarError;
use super::entries::TarEntries;
use super::index::TarIndex;
use crate::file_info::{FileStamp, open_regular};
use crate::{LoadError, LoadErrorKind};

/// The most archives to keep open; of more, each is opened for every read. Open files are often limited.
const OPEN_MAX: usize = 256;

/// Threads that read headers: they mostly wait for the disk or the network.
const THREADS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct TarArchive {
    pub(super) path: PathBuf,
    stamp: FileStamp,
    /// `None` if it is opened for every read.
    file: Option<File>,
    pub(super) index: TarIndex,
}

impl TarArchive {
    fn open(path: &Path, extensions: &[String], keep_open: bool) -> Result<Self, LoadError> {
        let open = || {
            let (file, stamp) = open_regular(path)?;
            Ok(Self {
                path: path.to_owned(),
                stamp,
                index: TarIndex::new(TarEntries::new(&file, stamp.len_bytes), extensions)?,
                file: keep_open.then_some(file),
            })
        };
        open().map_err(|fault: LoadErrorKind| LoadError::from(fault).with_file(path))
    }

    /// Work with the file, checked for changes before and after.
    pub(super) fn with_file(
        &self,
        work: impl FnOnce(&File) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let opened;
        let file = match &self.file {
            Some(file) => file,
            None => {
                (opened, _) = open_regular(&self.path).map_err(|fault| self.error(fault))?;
                &opened
            }
        };
        self.check(file)?;
        work(file)?;
        self.check(file)
    }

    fn check(&self, file: &File) -> Result<(), LoadError> {
        Err(self.error(match file.metadata() {
            Ok(now) if FileStamp::of(&now) == self.stamp => return Ok(()),
            Ok(_) => LoadErrorKind::FileChanged,
            Err(error) => LoadErrorKind::io("read", &error),
        }))
    }

    pub(super) fn error(&self, fault: impl Into<LoadErrorKind>) -> LoadError {
        LoadError::from(fault.into()).with_file(&self.path)
    }
}

/// Read bytes that were there when the file was opened.
pub(super) fn read_exact(file: &File, target: &mut [u8], start: u64) -> Result<(), LoadErrorKind> {
    file.read_exact_at(target, start)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LoadErrorKind::FileChanged,
            _ => LoadErrorKind::io("read", &error),
        })
}

/// Open and index archives, in this order; for a folder, all its `.tar` files sorted by name.
pub(super) fn open_all(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    extensions: &[String],
) -> Result<Vec<TarArchive>, LoadError> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match path.is_dir() {
            true => files.extend(archives_in(path)?),
            false => files.push(path.to_owned()),
        }
    }
    let keep_open = files.len() <= OPEN_MAX;
    let next = AtomicUsize::new(0);
    let opened = Mutex::new(Vec::with_capacity(files.len()));
    let claim = || next.fetch_add(1, Ordering::Relaxed);
    let work = || {
        while let Some((number, path)) = files.iter().enumerate().nth(claim()) {
            let archive = TarArchive::open(path, extensions, keep_open);
            lock(&opened).push((number, archive));
        }
    };
    thread::scope(|scope| {
        let helpers = files.len().min(THREADS_MAX).saturating_sub(1);
        // Without more threads, fewer do the work.
        let started = (0..helpers).map(|_| thread::Builder::new().spawn_scoped(scope, work));
        let _helpers: Vec<_> = started.collect();
        work();
    });
    let mut opened = mem::take(&mut *lock(&opened));
    opened.sort_by_key(|(number, _)| *number);
    opened.into_iter().map(|(_, archive)| archive).collect()
}

/// The `.tar` files in a folder, except hidden ones.
fn archives_in(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(folder);
    let list = fs::read_dir(folder).and_then(|list| list.collect::<io::Result<Vec<_>>>());
    let list = list.map_err(|problem| error(LoadErrorKind::io("list", &problem)))?;
    let mut paths: Vec<_> = list.iter().map(DirEntry::path).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let extension = path.extension().unwrap_or_default();
        !name.starts_with(b".") && extension.eq_ignore_ascii_case("tar")
    });
    paths.sort();
    match paths.is_empty() {
        true => Err(error(TarError::NoArchives.into())),
        false => Ok(paths),
    }
}
