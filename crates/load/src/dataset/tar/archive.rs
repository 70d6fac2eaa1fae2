//! Archive files: opening and reading them, and which of their entries form a sample.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, thread};

use pinlane_core::internal::lock;

use super::entries::{EntryData, TarEntries, TarEntry};
use crate::TarError;
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

/// An error lists this many extensions at most, each cut to this many bytes.
const LISTED_MAX: usize = 8;
const LISTED_BYTES_MAX: usize = 40;

/// The samples of one archive. A sample takes 8 bytes, its key, and 16 bytes for each of its fields.
#[derive(Debug, Default)]
pub(super) struct TarIndex {
    field_count: usize,
    /// All keys in a row.
    keys: Vec<u8>,
    /// Where the key of each sample ends.
    key_ends: Vec<usize>,
    /// The data of each field of each sample.
    data: Vec<Option<EntryData>>,
    /// The first extensions of the archive's files, as first spelled.
    extensions: Vec<Vec<u8>>,
    /// For each field, whether any sample has it.
    used: Vec<bool>,
    /// Sample and field of every file that is apart from the other files of its sample, sorted.
    pub(super) scattered: Vec<(usize, usize)>,
}

impl TarIndex {
    /// Index the entries. Field `i` is in files with extension `i`.
    pub(super) fn new(
        mut entries: TarEntries<'_>,
        extensions: &[String],
    ) -> Result<Self, LoadErrorKind> {
        let mut index = Self {
            field_count: extensions.len(),
            used: vec![false; extensions.len()],
            ..Self::default()
        };
        while let Some(entry) = entries.next()? {
            index.add(&entry, extensions)?;
        }
        index.scattered = index.find_scattered();
        Ok(index)
    }

    fn add(&mut self, entry: &TarEntry, extensions: &[String]) -> Result<(), TarError> {
        let Some((key, extension)) = split_name(&entry.name) else {
            return Ok(());
        };
        if self.len() == 0 || self.key(self.len() - 1) != key {
            self.keys.extend(key);
            self.key_ends.push(self.keys.len());
            self.data.resize(self.data.len() + self.field_count, None);
        }
        list_extension(&mut self.extensions, extension);
        let sample = self.data.len() - self.field_count;
        for (field, wanted) in extensions.iter().enumerate() {
            if !extension.eq_ignore_ascii_case(wanted.as_bytes()) {
                continue;
            }
            if self.data[sample + field].replace(entry.data).is_some() {
                let entry = String::from_utf8_lossy(&entry.name).into_owned();
                return Err(TarError::Duplicate { entry });
            }
            self.used[field] = true;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// The common start of the names of a sample's files.
    pub(super) fn key(&self, sample: usize) -> &[u8] {
        let start = sample.checked_sub(1).map_or(0, |at| self.key_ends[at]);
        &self.keys[start..self.key_ends[sample]]
    }

    pub(super) fn fields(&self, sample: usize) -> &[Option<EntryData>] {
        &self.data[sample * self.field_count..][..self.field_count]
    }

    /// Fields that a sample lacks but another one with the same key has, sorted.
    fn find_scattered(&self) -> Vec<(usize, usize)> {
        if self.data.iter().all(Option::is_some) {
            return Vec::new();
        }
        let mut samples: Vec<usize> = (0..self.len()).collect();
        samples.sort_by_key(|sample| self.key(*sample));
        let mut scattered = Vec::new();
        for same in samples.chunk_by(|one, other| self.key(*one) == self.key(*other)) {
            for field in 0..self.field_count {
                let lacks = |sample: &&usize| self.fields(**sample)[field].is_none();
                let without = same.iter().filter(lacks);
                if without.clone().count() < same.len() {
                    scattered.extend(without.map(|sample| (*sample, field)));
                }
            }
        }
        scattered.sort_unstable();
        scattered
    }
}

/// The key and the extension: what is before and after the first dot of the file name. Names without a dot,
/// hidden files and archive metadata (`__…__`) belong to no sample.
fn split_name(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = name.split(|byte| *byte == b'/').next()?;
    if first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__") {
        return None;
    }
    let slash = name.iter().rposition(|byte| *byte == b'/');
    let base = slash.map_or(0, |slash| slash + 1);
    let dot = name[base..].iter().position(|byte| *byte == b'.')?;
    (dot > 0).then(|| (&name[..base + dot], &name[base + dot + 1..]))
}

/// Remember an extension for the error of [`check_extensions`].
fn list_extension(listed: &mut Vec<Vec<u8>>, extension: &[u8]) {
    let name = &extension[..extension.len().min(LISTED_BYTES_MAX)];
    let known = |other: &Vec<u8>| other.eq_ignore_ascii_case(name);
    if listed.len() < LISTED_MAX && !listed.iter().any(known) {
        listed.push(name.to_vec());
    }
}

/// Check that every field has a file in some archive, if there are samples: else it is most likely a typo.
pub(super) fn check_extensions(
    archives: &[TarArchive],
    extensions: &[String],
) -> Result<(), LoadError> {
    let indexes = || archives.iter().map(|archive| &archive.index);
    let is_unused = |field: &usize| !indexes().any(|index| index.used[*field]);
    let has_samples = indexes().any(|index| index.len() > 0);
    let unused = (0..extensions.len()).find(is_unused);
    let Some(unused) = unused.filter(|_| has_samples) else {
        return Ok(());
    };
    let mut listed = Vec::new();
    for name in indexes().flat_map(|index| &index.extensions) {
        list_extension(&mut listed, name);
    }
    listed.sort();
    let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let fault = TarError::NoSuchExtension {
        extension: extensions[unused].clone(),
        others: listed.iter().map(text).collect(),
    };
    Err(match archives {
        [one] => one.error(fault),
        _ => fault.into(),
    })
}
