//! `pinlane`: the tool.
//!
//! Exit status: 0 done, 1 the job failed, 2 the words are off, or a file that they name cannot be opened or
//! understood (see [`source_file::failed`]).

#![forbid(unsafe_code)]

mod args;
mod bench;
mod calibrate;
mod compare;
mod date;
mod device;
mod doctor;
mod dot;
mod dtype;
mod duration;
mod feed;
mod file;
mod interrupt;
mod load;
mod manual;
mod measure;
mod number;
mod nvml;
mod output;
mod overlap;
mod pcie;
mod plan;
mod profile;
mod profile_cache;
mod progress;
mod random;
mod rate;
mod selftest;
mod size;
mod sizes;
mod source_file;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use output::{Output, UsageError};

fn main() -> ExitCode {
    let args = Args::parse();
    let mut output = Output::new();
    let result = run(&args, &mut output).and_then(|good| {
        output.finish()?;
        Ok(good)
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // Whoever reads has seen enough: that is no failure of ours.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// Whether the job went well.
fn run(args: &Args, output: &mut Output) -> anyhow::Result<bool> {
    match &args.command {
        Command::Compare(compare) => compare::run(&args.device, compare, args.json, output),
        Command::Bench(bench) => bench::run(&args.device, bench, args.json, output),
        Command::Calibrate(calibrate) => calibrate::run(&args.device, calibrate, args.json, output),
        Command::Doctor(doctor) => doctor::run(&args.device, doctor, args.json, output),
        Command::Dot(dot) => dot::run(&args.device, dot, args.json, output),
        Command::Load(load) => load::run(&args.device, load, args.json, output),
        Command::Feed(feed) => feed::run(&args.device, feed, args.json, output),
        Command::Overlap(overlap) => overlap::run(&args.device, overlap, args.json, output),
        Command::Plan(plan) => plan::run(&args.device, plan, args.json, output),
        Command::Completions(completions) => manual::completions(completions, output),
        Command::Man(man) => manual::man(man, output),
        Command::Selftest(selftest) => selftest::run(&args.device, selftest, args.json, output),
    }
}
