//! Files for parsers that open them. Each thread has one folder: a fuzzer opens millions of files, and making
//! a folder for each would take most of its time.

use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Self {
        let thread = format!("{:?}", thread::current().id()).replace(['(', ')'], "-");
        let name = format!("pinlane-fuzz-{}-{thread}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for the files");
        Self(path)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    static FOLDER: ScratchFolder = ScratchFolder::new();
}

/// Writes a file of this thread, in place of the last one with this name.
pub(crate) fn file(name: &str, bytes: &[u8]) -> PathBuf {
    FOLDER.with(|folder| write(&folder.0.join(name), bytes))
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    if fs::write(path, bytes).is_err() {
        let folder = path.parent().expect("it is in the folder");
        fs::create_dir_all(folder).expect("a folder for the files");
        fs::write(path, bytes).expect("a file");
    }
    path.to_owned()
}
