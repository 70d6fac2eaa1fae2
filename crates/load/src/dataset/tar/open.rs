//! From paths to archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::TarField;
use super::archive::Archive;
use crate::{LoadError, LoadErrorKind, TarError};

/// Archives that are kept open. Of more, each is opened when it is read: processes may have some
/// thousand files open at most, and often a thousand.
const OPEN_MAX: usize = 256;

/// Threads that read headers: waiting for a disk or a network is most of it.
const THREADS_MAX: usize = 8;

/// The archives that these paths name, in this order; of a folder, all its `.tar` files by name.
pub(super) fn archives(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    fields: &[TarField],
) -> Result<Vec<Archive>, LoadError> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match path.is_dir() {
            true => files.extend(folder(path)?),
            false => files.push(path.to_owned()),
        }
    }
    let keep = files.len() <= OPEN_MAX;
    let next = AtomicUsize::new(0);
    let opened = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        while let Some((number, path)) = take(&next, &files) {
            let archive = Archive::open(path, fields, keep);
            let mut opened = opened.lock().expect("pushing does not panic");
            opened.push((number, archive));
        }
    };
    thread::scope(|scope| {
        let helpers = files.len().min(THREADS_MAX).saturating_sub(1);
        // Where there are no more threads to be had, fewer do.
        let started = (0..helpers).map(|_| thread::Builder::new().spawn_scoped(scope, work));
        let _helpers: Vec<_> = started.collect();
        work();
    });
    let mut opened = opened.into_inner().expect("pushing does not panic");
    opened.sort_by_key(|(number, _)| *number);
    opened.into_iter().map(|(_, archive)| archive).collect()
}

fn take<'a>(next: &AtomicUsize, files: &'a [PathBuf]) -> Option<(usize, &'a PathBuf)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    files.get(number).map(|path| (number, path))
}

fn folder(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let error = |fault: LoadErrorKind| LoadError::from(fault).with_file(folder);
    let mut paths = list().map_err(|problem| error(LoadErrorKind::io("list", &problem)))?;
    paths.retain(|path| {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !hidden
            && path
                .extension()
                .is_some_and(|end| end.eq_ignore_ascii_case("tar"))
    });
    paths.sort();
    match paths.is_empty() {
        true => Err(error(TarError::NoArchives.into())),
        false => Ok(paths),
    }
}
