//! The `pinlane` command-line tool as a library, so that other packages can carry the command.
//!
//! ```text
//!   run              flags of every command; the exit status     (this file)
//!   commands/        the commands, one module each; they do not import each other
//!   preload/         other programs with Pinlane's library preloaded, for `boost` and `trace`
//!   measure/         timed copies, for `compare` and `bench`
//!   calibrated_profiles, device, profile, system/, …   shared by commands
//!   parse/, output, terminal, …                        small helpers
//! ```
//!
//! Exit status: 0 success; 1 the job failed or was interrupted; 2 invalid arguments, or an input file that
//! cannot be opened or parsed (see `input_error::failed`).

#![forbid(unsafe_code)]

mod calibrated_profiles;
mod clock;
mod command_context;
mod commands;
mod device;
mod driver_or_express_copy;
mod embedded;
mod input_error;
mod interrupt;
mod measure;
mod median;
mod output;
mod output_file;
mod parse;
mod preload;
mod profile;
mod progress;
mod report_environment;
mod system;
mod terminal;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

pub use embedded::EmbeddedLibraries;

use command_context::CommandContext;
use commands::{Command, Ending};
use device::DeviceChoice;
use input_error::UsageError;

/// The express lane between host memory and the GPU.
#[derive(Parser)]
#[command(
    name = "pinlane",
    version,
    after_help = "\
Examples:
  pinlane compare                        compare pageable and pinned memory on this machine's GPU
  pinlane --device sim:h200 selftest     check the simulated H200

Exit status: 0 success; 1 the job failed or was interrupted; 2 invalid arguments, or an input file that
cannot be opened or parsed. Errors found later in an input file, such as a bad sample, a file that
changes while it is read or a mismatch found by --verify, exit with 1."
)]
struct Args {
    /// Device to run on: auto, cuda, cuda:N, sim, sim:PROFILE or sim:FILE
    ///
    /// `auto` uses the first CUDA GPU. Without a GPU it prints a note and uses sim:pcie3-x16.
    #[arg(
        long,
        global = true,
        default_value = "auto",
        value_name = "DEVICE",
        value_parser = device::parse
    )]
    device: DeviceChoice,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,

    /// Say more on standard error, such as why no GPU was found
    #[arg(long, short, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

/// Runs the tool with these arguments, the first of which is its name, and returns its exit status. It takes
/// over the signals of the process, as a program does. A command that runs another program ends the process as that
/// one ended, and does not return. `libraries` come from [`embedded_libraries!`].
pub fn run(arguments: impl IntoIterator<Item = OsString>, libraries: EmbeddedLibraries) -> u8 {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(message) => {
            // Help, or invalid arguments. If even that cannot be printed, only the status is left.
            let _ = message.print();
            return u8::try_from(message.exit_code()).unwrap_or(2);
        }
    };
    output::set_verbose(args.verbose);
    let context = CommandContext {
        device: &args.device,
        json: args.json,
        date: clock::iso_now(),
        libraries,
    };
    match commands::run(&args.command, &context, Args::command) {
        Ok(Ending::Job { succeeded: true }) => 0,
        Ok(Ending::Job { succeeded: false }) => 1,
        Ok(Ending::Program(status)) => pinlane_supervise::exit_as(status),
        // The reader closed the pipe, as `head` does.
        Err(error) if output::is_broken_pipe(&error) => 0,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            if error.is::<UsageError>() { 2 } else { 1 }
        }
    }
}

#[cfg(test)]
#[path = "../tests/support/scratch.rs"]
mod scratch;

/// Environment variables for tests.
#[cfg(test)]
fn test_variables(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}
