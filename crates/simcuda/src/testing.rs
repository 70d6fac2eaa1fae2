//! Running a program on the simulated GPU, for tests: the library under the names that programs
//! look for, in a folder of its own, and the report of how the program used it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io};

mod child;
mod elf;

pub use child::{complaints, in_child};
pub use elf::omit;

/// The name under which Cargo builds the library.
const FILE_NAME: &str = "libpinlane_simcuda.so";

/// The shared library that was built with the running test: it lies beside the test's executable
/// or one folder above.
///
/// # Errors
/// When it is in neither.
pub fn library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join(FILE_NAME));
    places.find(|place| place.exists()).ok_or_else(|| {
        let message = format!("no {FILE_NAME} near {}", program.display());
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// A folder with `libcuda.so.1` and `libcuda.so`, removed when dropped.
pub struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// A folder with the library as it is.
    ///
    /// # Errors
    /// When the library is not built, or the folder cannot be made.
    pub fn new() -> io::Result<Self> {
        let stage = Self::empty()?;
        std::os::unix::fs::symlink(library()?, stage.driver())?;
        stage.link_second_name()
    }

    /// A folder with a copy of the library that lacks these exports.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and when the library exports no such symbol.
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

    /// The folder, to be put on the loader's path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The library under libcuda's name.
    #[must_use]
    pub fn driver(&self) -> PathBuf {
        self.folder.join("libcuda.so.1")
    }

    /// A program that finds this library as its CUDA driver, and writes its report here.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.folder);
        command.env("PINLANE_SIMCUDA_REPORT", self.folder.join("report"));
        command
    }

    /// The report of the last program that has ended, line by line.
    ///
    /// # Errors
    /// When there is none: the program never called `cuInit`, or did not end by itself.
    pub fn report(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(self.folder.join("report"))?;
        Ok(text.lines().map(String::from).collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder left in the temporary one does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
