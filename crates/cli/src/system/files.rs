//! Files of the system, below a root folder, read with care: whatever they hold is a text that is
//! not too long, or nothing.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// More than any file that is asked for has.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// More than any folder that is asked for has, save one that nobody made in good faith.
const NAMES_MAX: usize = 1 << 17;

/// The folder that stands for `/`.
#[derive(Clone, Copy)]
pub(crate) struct Root<'p>(pub(crate) &'p Path);

impl Root<'_> {
    /// The path below the root.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The beginning of a file, without space around it; `None` where it cannot be read or is empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        // A pipe or a device would wait or never end; files of the system are plain.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The number that a file holds.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, in order; none where it cannot be read.
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

    /// Whether something is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

/// What stands behind `name:` in a file of such lines.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}
