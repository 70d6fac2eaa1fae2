//! Archive files: opening, indexing and reading them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::TarError;
use super::entries::TarEntries;
use super::index::{EntryData, TarIndex};
use crate::file_info::{FileStamp, open_regular};
use crate::{LoadError, LoadErrorKind};

/// The most archives to keep open. With more, each is opened for every read: processes are often limited to
/// a thousand open files.
const OPEN_MAX: usize = 256;

/// Threads that read headers: they mostly wait for the disk or the network.
const THREADS_MAX: usize = 8;

/// An indexed archive.
#[derive(Debug)]
pub(super) struct TarArchive {
    path: PathBuf,
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Work with the file, checked for changes before and after.
    pub(super) fn with_file<T>(
        &self,
        work: impl FnOnce(&File) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let opened;
        let file = match &self.file {
            Some(file) => file,
            None => {
                (opened, _) = open_regular(&self.path).map_err(|fault| self.error(fault))?;
                &opened
            }
        };
        self.check(file)?;
        let done = work(file)?;
        self.check(file)?;
        Ok(done)
    }

    fn check(&self, file: &File) -> Result<(), LoadError> {
        match file.metadata() {
            Ok(now) if FileStamp::of(&now) == self.stamp => Ok(()),
            Ok(_) => Err(self.error(LoadErrorKind::FileChanged)),
            Err(error) => Err(self.error(LoadErrorKind::io("read", &error))),
        }
    }

    /// Read the data of an entry.
    pub(super) fn read(
        &self,
        file: &File,
        data: EntryData,
        target: &mut [u8],
    ) -> Result<(), LoadError> {
        debug_assert_eq!(target.len() as u64, data.bytes);
        read_exact(file, target, data.start.get()).map_err(|fault| self.error(fault))
    }

    /// An error of this archive.
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
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(number) else { break };
            let archive = TarArchive::open(path, extensions, keep_open);
            let mut opened = opened.lock().expect("pushing does not panic");
            opened.push((number, archive));
        }
    };
    thread::scope(|scope| {
        let helpers = files.len().min(THREADS_MAX).saturating_sub(1);
        // Without more threads, fewer do the work.
        let started = (0..helpers).map(|_| thread::Builder::new().spawn_scoped(scope, work));
        let _helpers: Vec<_> = started.collect();
        work();
    });
    let mut opened = opened.into_inner().expect("pushing does not panic");
    opened.sort_by_key(|(number, _)| *number);
    opened.into_iter().map(|(_, archive)| archive).collect()
}

/// The `.tar` files in a folder, except hidden ones.
fn archives_in(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(folder);
    let mut paths = list().map_err(|problem| error(LoadErrorKind::io("list", &problem)))?;
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
