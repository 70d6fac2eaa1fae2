//! System files below a root folder. Reads are bounded, whatever the files hold.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// More than any file read here has.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// More than any folder read here has, unless someone made it on purpose.
const NAMES_MAX: usize = 1 << 17;

/// The root folder: `/`, except in tests.
#[derive(Clone, Copy)]
pub(crate) struct SystemRoot<'p>(pub(crate) &'p Path);

impl SystemRoot<'static> {
    pub(crate) fn real() -> Self {
        Self(Path::new("/"))
    }
}

impl SystemRoot<'_> {
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The start of a file, trimmed. `None` if it cannot be read or is empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        // Reading a pipe or a device could block or never end.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The sorted names in a folder; empty if it cannot be read.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .take(NAMES_MAX)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

/// The value of the line `name: value`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// A field such as `MemTotal:  24682416 kB`, in bytes.
pub(crate) fn kib_field(meminfo: &str, name: &str) -> Option<u64> {
    let number = field(meminfo, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}
