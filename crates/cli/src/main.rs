//! The `pinlane` command-line tool.
//!
//! ```text
//!   main, args       the command line
//!   commands/        one module per command; commands do not import each other
//!   measure/         timed copies, for `compare` and `bench`
//!   calibration, device, profile, system/, …   shared by commands
//!   parse/, output, progress, …                small helpers
//! ```
//!
//! Exit status: 0 success; 1 the job failed or was interrupted; 2 invalid arguments, or an input file that
//! cannot be opened or parsed (see [`input_error::failed`]).

#![forbid(unsafe_code)]

mod args;
mod calibration;
mod chart_files;
mod cli;
mod clock;
mod commands;
mod copier;
mod date;
mod device;
mod input_error;
mod interrupt;
mod measure;
mod median;
mod output;
mod output_file;
mod parse;
mod profile;
mod profile_cache;
mod progress;
mod system;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use cli::Cli;
use commands::{
    bench, calibrate, compare, doctor, dot, feed, load, manual, overlap, plan, selftest,
};
use output::{Output, UsageError};

fn main() -> ExitCode {
    let args = Args::parse();
    let mut cli = Cli {
        device: &args.device,
        json: args.json,
        output: Output::new(),
    };
    let result = run(&args.command, &mut cli).and_then(|success| {
        cli.output.finish()?;
        Ok(success)
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // The reader closed the pipe, as `head` does.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// Runs a command. Returns whether the job succeeded.
fn run(command: &Command, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    match command {
        Command::Compare(args) => compare::run(args, cli),
        Command::Bench(args) => bench::run(args, cli),
        Command::Calibrate(args) => calibrate::run(args, cli),
        Command::Doctor(args) => doctor::run(args, cli),
        Command::Dot(args) => dot::run(args, cli),
        Command::Load(args) => load::run(args, cli),
        Command::Feed(args) => feed::run(args, cli),
        Command::Overlap(args) => overlap::run(args, cli),
        Command::Plan(args) => plan::run(args, cli),
        Command::Completions(args) => manual::completions(args, Args::command(), cli),
        Command::Man(args) => manual::man(args, Args::command(), cli),
        Command::Selftest(args) => selftest::run(args, cli),
    }
}
