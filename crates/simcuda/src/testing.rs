//! For tests: runs a program on the simulated GPU, with the library under libcuda's names in a
//! temporary folder, and returns its report.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io};

mod child;
mod elf;

pub use child::{complaints, in_child};
pub use elf::omit;

/// The library's file name in Cargo's target folder.
const FILE_NAME: &str = "libpinlane_simcuda.so";

/// The shared library that was built with the running test, next to the test's executable or one
/// folder above.
///
/// # Errors
/// If it is in neither.
pub fn library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join(FILE_NAME));
    places.find(|place| place.exists()).ok_or_else(|| {
        let message = format!("no {FILE_NAME} near {}", program.display());
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// A temporary folder with `libcuda.so.1` and `libcuda.so`, removed when dropped.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// Creates a folder with the library.
    ///
    /// # Errors
    /// If the library is not built, or the folder cannot be created.
    pub fn new() -> io::Result<Self> {
        let stage = Self::empty()?;
        std::os::unix::fs::symlink(library()?, stage.driver())?;
        stage.link_second_name()
    }

    /// Creates a folder with a copy of the library that lacks these symbols.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and if the library does not export one of them.
    pub fn without(symbols: &[&str]) -> io::Result<Self> {
        let stage = Self::empty()?;
        omit(&library()?, &stage.driver(), symbols)?;
        stage.link_second_name()
    }

    fn empty() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pinlane-simcuda-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn link_second_name(self) -> io::Result<Self> {
        std::os::unix::fs::symlink("libcuda.so.1", self.folder.join("libcuda.so"))?;
        Ok(self)
    }

    /// The folder, for the loader's path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The library under libcuda's name.
    #[must_use]
    pub fn driver(&self) -> PathBuf {
        self.folder.join("libcuda.so.1")
    }

    /// A command that runs a program with this library as its CUDA driver, and its report in this
    /// folder.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.folder);
        command.env("PINLANE_SIMCUDA_REPORT", self.folder.join("report"));
        command
    }

    /// The lines of the last program's report.
    ///
    /// # Errors
    /// If there is none: the program did not call `cuInit`, or was killed.
    pub fn report(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(self.folder.join("report"))?;
        Ok(text.lines().map(String::from).collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A leftover temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
