//! A folder for one test.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new folder, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pinlane-cli-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A file in it, as an argument.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("plain text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
