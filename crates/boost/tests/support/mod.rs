//! C programs, compiled here, that run on simulated libcuda with and without the library preloaded.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use pinlane_boost_files::{Counter, Counters, Direction, read_all, variables};
use pinlane_simcuda::testing::{self, Stage};

/// How a program gets libcuda's functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindBy {
    Dlsym,
    /// As `Dlsym`, after `dlopen` with an absolute path.
    Path,
    ProcAddress,
    Linked,
}

/// A program of `tests/programs`, compiled into a folder that goes with it.
pub struct Program {
    folder: PathBuf,
    find_by: FindBy,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    /// Libraries to preload behind ours.
    preload: Vec<PathBuf>,
    stage: Stage,
    without_files: bool,
}

/// What a program left.
pub struct Run {
    pub output: Output,
    pub counters: Counters,
    /// The simulated driver's report: misuse and leaks.
    pub report: Vec<String>,
}

impl Program {
    pub fn new(name: &str) -> Self {
        Self::found_by(name, FindBy::Dlsym)
    }

    pub fn found_by(name: &str, find_by: FindBy) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("pinlane-boost-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let stage = Stage::new().expect("simcuda is built");
        let mut compile = compiler(name);
        compile.arg("-o").arg(folder.join("program"));
        match find_by {
            FindBy::Linked => compile
                .arg("-DLINKED")
                .arg("-L")
                .arg(stage.folder())
                .arg("-lcuda"),
            _ => compile.arg("-ldl"),
        };
        succeed(&mut compile);
        Self {
            folder,
            find_by,
            arguments: Vec::new(),
            variables: Vec::new(),
            preload: Vec::new(),
            stage,
            without_files: false,
        }
    }

    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// On a driver that does not say that it is simulated, so that the library uses all its threads.
    pub fn on_gpu(mut self) -> Self {
        self.stage = Stage::without(&["pinlane_simcuda_profile"]).expect("simcuda is built");
        self
    }

    /// Lets the library serve pinned memory.
    pub fn pinning(self) -> Self {
        self.variable(variables::PINNING, "1")
    }

    /// Runs it where no file may have contents.
    pub fn without_files(mut self) -> Self {
        self.without_files = true;
        self
    }

    /// Runs it with the library and a standard error that is full.
    pub fn boosted_with_full_stderr(&self) -> ExitStatus {
        let folder = self.folder.join("counters");
        fs::create_dir_all(&folder).expect("a folder");
        let library = testing::built_library("libpinlane_boost.so").expect("it is built");
        let limit = if self.without_files {
            "ulimit -f 0; "
        } else {
            ""
        };
        let script = format!(
            "{limit}LD_PRELOAD={} exec \"$0\" 2>/dev/full",
            library.display()
        );
        let mut command = self.stage.command("sh");
        command
            .arg("-c")
            .arg(script)
            .arg(self.folder.join("program"));
        command
            .env(variables::FOLDER, &folder)
            .env_remove("PINLANE_SIMCUDA_REPORT");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::null());
        command.status().expect("sh is there")
    }

    /// Preloads another library of `tests/programs` behind ours.
    pub fn with_interposer(mut self, name: &str) -> Self {
        let library = self.folder.join(format!("{name}.so"));
        let mut compile = compiler(name);
        succeed(compile.args(["-shared", "-fPIC", "-o"]).arg(&library));
        self.preload.push(library);
        self
    }

    /// Runs it without the library.
    pub fn plain(&self) -> Output {
        self.command().output().expect("the program starts")
    }

    /// Runs it with the library.
    pub fn boosted(&self) -> Run {
        let folder = self.folder.join("counters");
        fs::create_dir_all(&folder).expect("a folder");
        let library = testing::built_library("libpinlane_boost.so").expect("it is built");
        let libraries = [&[library][..], &self.preload].concat();
        let libraries = libraries.iter().map(|path| path.to_str().expect("text"));
        let mut command = self.command();
        command.env("LD_PRELOAD", libraries.collect::<Vec<_>>().join(":"));
        command.env(variables::FOLDER, &folder);
        let output = command.output().expect("the program starts");
        let mut counters = Counters::default();
        for process in read_all(&folder).expect("counters") {
            counters.add(&process);
        }
        fs::remove_dir_all(&folder).expect("ours");
        Run {
            output,
            counters,
            report: self.stage.report().unwrap_or_default(),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.stage.command(self.folder.join("program"));
        command.args(&self.arguments);
        command.env("LIBCUDA_PATH", self.stage.driver());
        command.env(
            "FIND_BY",
            match self.find_by {
                FindBy::Dlsym | FindBy::Linked => "dlsym",
                FindBy::Path => "path",
                FindBy::ProcAddress => "proc_address",
            },
        );
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.envs(variables);
        command
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A leftover folder does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Run {
    /// Standard output of a run that succeeded.
    pub fn stdout(&self) -> String {
        text_of(&self.output)
    }

    /// Copies on the express lane: up and down.
    pub fn boosted_copies(&self) -> (u64, u64) {
        let count = |direction| self.counters.boosted(Counter::BoostedCopies, direction);
        (count(Direction::Upload), count(Direction::Download))
    }

    /// Fails if the simulated driver found misuse or leaks.
    pub fn assert_clean(&self) {
        let complaints = testing::complaints(&self.report);
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

/// Standard output of a program that succeeded.
pub fn text_of(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A C compiler, which Rust's linker needs, too.
fn compiler(name: &str) -> Command {
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-O1", "-pthread"]).arg(source);
    compile
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("there is a C compiler");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}
