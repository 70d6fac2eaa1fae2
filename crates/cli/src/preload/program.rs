//! A program that runs with the library preloaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use pinlane_boost_files::{Counters, read_all, variables};

use super::library_files::LibraryFiles;
use super::not_seen;
use super::private_folder::TemporaryFolder;
use crate::command_context::CommandContext;
use crate::device::DeviceChoice;
use crate::input_error::UsageError;
use crate::output;

/// Exit status of shells for a program that does not exist, and for one that cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;

/// A program, ready to run. What the library writes goes with it.
pub(crate) struct PreloadedProgram {
    name: OsString,
    command: Command,
    folder: TemporaryFolder,
}

/// What is left of a program.
pub(crate) struct ProgramRun {
    pub(crate) status: ExitStatus,
    /// The counters of each process that loaded the library.
    pub(crate) processes: Vec<Counters>,
    /// Why no copy was seen, if none was.
    pub(crate) not_seen: Option<String>,
}

impl ProgramRun {
    /// The counters of all processes together.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.processes.iter().for_each(|process| sum.add(process));
        sum
    }
}

impl PreloadedProgram {
    /// Prepares to run `words`, a program and its arguments, on the device of the command.
    pub(crate) fn new(words: &[OsString], context: &CommandContext<'_>) -> anyhow::Result<Self> {
        let (name, arguments) = words.split_first().expect("clap requires a program");
        let profile = simulated_profile(context.device)?;
        let folder = TemporaryFolder::new()?;
        let files = LibraryFiles::install(context.libraries, profile.is_some(), &folder)?;
        let mut command = Command::new(name);
        command.args(arguments);
        if context.json {
            // Standard output is for the report alone, so that other programs can read it.
            command.stdout(io::stderr());
        }
        command.env(variables::FOLDER, folder.path());
        command.env(
            "LD_PRELOAD",
            in_front(files.boost.as_os_str(), "LD_PRELOAD"),
        );
        if let (Some(profile), Some(folder)) = (profile, &files.simcuda_folder) {
            command.env(
                "LD_LIBRARY_PATH",
                in_front(folder.as_os_str(), "LD_LIBRARY_PATH"),
            );
            command.env("PINLANE_SIMCUDA_PROFILE", profile);
        }
        Ok(Self {
            name: name.clone(),
            command,
            folder,
        })
    }

    /// Sets a variable of the library.
    pub(crate) fn set(&mut self, variable: &str, value: impl AsRef<OsStr>) {
        self.command.env(variable, value);
    }

    /// Where processes of the program leave their files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program to its end.
    pub(crate) fn run(&mut self) -> anyhow::Result<ProgramRun> {
        let status = match pinlane_supervise::run(&mut self.command) {
            Ok(status) => status,
            Err(error) => return Ok(self.cannot_start(&error)),
        };
        // The program's exit status counts more than our counters.
        let processes = read_all(self.folder.path()).unwrap_or_default();
        let is_seen = processes.iter().any(|process| process.copies_seen() > 0);
        let not_seen = (!is_seen).then(|| not_seen::explain(&self.name, &processes));
        Ok(ProgramRun {
            status,
            processes,
            not_seen,
        })
    }

    fn cannot_start(&self, error: &io::Error) -> ProgramRun {
        let name = self.name.to_string_lossy();
        output::complain(&format!("error: cannot run {name}: {error}"));
        let status = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUNNABLE,
        };
        ProgramRun {
            status: ExitStatus::from_raw(status << 8),
            processes: Vec::new(),
            not_seen: None,
        }
    }
}

/// The profile of the device that the program is to run on, by name or file; `None` on a real one, which it chooses
/// itself.
fn simulated_profile(device: &DeviceChoice) -> anyhow::Result<Option<OsString>> {
    Ok(match device {
        DeviceChoice::Auto | DeviceChoice::Cuda(0) => None,
        DeviceChoice::Cuda(number) => {
            let reason = format!(
                "the program chooses its GPU itself; instead of --device cuda:{number} set CUDA_VISIBLE_DEVICES={number}"
            );
            return Err(UsageError(reason).into());
        }
        DeviceChoice::Sim(named) => Some(match &named.file {
            // The program may change its folder.
            Some(file) => std::path::absolute(file)?.into_os_string(),
            None => OsString::from(&named.profile.name),
        }),
    })
}

/// A list of the loader with one more entry in front.
fn in_front(entry: &OsStr, variable: &str) -> OsString {
    let mut list = entry.to_owned();
    if let Some(others) = env::var_os(variable).filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
