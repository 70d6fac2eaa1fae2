//! For tests: runs a program on the simulated GPU, with the library under libcuda's names in a
//! temporary folder, and returns its report.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io};

mod hide_symbols;

pub use hide_symbols::omit;

/// Set in the child to the name of the test.
const CHILD: &str = "PINLANE_SIMCUDA_TEST_CHILD";

/// Set by hand to run the programs in this process, on the machine's libcuda.
const ON_LIBCUDA: &str = "PINLANE_TEST_ON_LIBCUDA";

/// The shared library that was built with the running test.
///
/// # Errors
/// If it was not.
pub fn library() -> io::Result<PathBuf> {
    built_library("libpinlane_simcuda.so")
}

/// A shared library that was built with the running test, next to the test's executable or one folder
/// above.
///
/// # Errors
/// If it is in neither.
pub fn built_library(file_name: &str) -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join(file_name));
    places.find(|place| place.exists()).ok_or_else(|| {
        let message = format!("no {file_name} near {}", program.display());
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

/// Runs `program` in a child process on `stage` and returns its report. A process loads libcuda only
/// once, so the child is the same test binary, which runs the test `name` again; there this runs the
/// program and returns `None`.
/// `settings` are those of [the crate](crate), without their common prefix.
///
/// # Panics
/// If the child fails, or runs no test of that name.
pub fn in_child(
    stage: impl FnOnce() -> Stage,
    name: &str,
    settings: &[(&str, &str)],
    program: impl FnOnce(),
) -> Option<Vec<String>> {
    let is_child = env::var_os(CHILD).is_some_and(|child| child == name);
    if is_child || env::var_os(ON_LIBCUDA).is_some() {
        program();
        return None;
    }
    let stage = stage();
    let mut command = stage.command(env::current_exe().expect("the test's own path"));
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, name).stdin(Stdio::null());
    for (variable, value) in settings {
        command.env(format!("PINLANE_SIMCUDA_{variable}"), value);
    }
    let output = command.output().expect("the test binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the child of {name} failed under {settings:?}: {}\n{stderr}",
        output.status
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("1 passed"),
        "the child of {name} ran no test: {stdout}"
    );
    Some(stage.report().unwrap_or_default())
}

/// The lines of a report that describe problems.
#[must_use]
pub fn complaints(report: &[String]) -> Vec<&str> {
    let lines = report.iter().map(String::as_str);
    lines.filter(|line| !line.starts_with("context:")).collect()
}
