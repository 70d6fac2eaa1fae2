//! The words of the command line.

use clap::{Parser, Subcommand};

use crate::device::{self, Choice};
use crate::{calibrate, manual, plan, size};

/// The express lane between host memory and the GPU.
#[derive(Parser)]
#[command(
    name = "pinlane",
    version,
    after_help = "\
Examples:
  pinlane compare                        pageable against pinned memory on this machine's GPU
  pinlane --device sim:h200 selftest     check the simulated H200"
)]
pub(crate) struct Args {
    /// Where to run: auto, cuda, cuda:N, sim, sim:PROFILE or sim:FILE
    ///
    /// `auto` takes the first CUDA GPU; with none it says so and uses sim:pcie3-x16.
    #[arg(
        long,
        global = true,
        default_value = "auto",
        value_name = "DEVICE",
        value_parser = device::parse
    )]
    pub(crate) device: Choice,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure pageable against pinned memory
    #[command(after_help = "\
Examples:
  pinlane compare --size 1GiB --repeat 9
  pinlane --device sim:pcie5-x16 --json compare")]
    Compare(Compare),

    /// Measure this machine and write a profile of it
    #[command(after_help = "\
Examples:
  pinlane calibrate
  pinlane --device cuda:1 calibrate --output my-gpu.toml")]
    Calibrate(calibrate::Args),

    /// Look at whether this machine is set up for fast transfers
    ///
    /// Every GPU is looked at, or the one that --device names; each for a moment with a short copy, since
    /// idle links rest. Nothing is changed. The exit status is 1 where something is wrong.
    #[command(after_help = "\
Examples:
  pinlane doctor
  pinlane --device cuda:1 --json doctor")]
    Doctor(crate::doctor::Args),

    /// Run one job five ways and see what overlaps
    #[command(after_help = "\
Examples:
  pinlane overlap --html overlap.html
  pinlane --device sim:h200 overlap --size 1GiB --kernel 4ms --streams 3")]
    Overlap(crate::overlap::Args),

    /// Find the best chunk, streams and order for a job, and predict its time
    #[command(after_help = "\
Examples:
  pinlane plan --in 1GiB --out 1GiB --kernel 4ms
  pinlane plan --in 4GiB --out 0 --kernel-rate 250GB/s --input express --profile h200 --svg plan.svg")]
    Plan(Box<plan::Args>),

    /// Run the conformance suite on the device
    #[command(after_help = "\
Examples:
  pinlane selftest --filter events/
  pinlane --device sim:pcie3-x16 selftest --seed 7")]
    Selftest(Selftest),

    /// Print what makes a shell complete these words
    #[command(after_help = "\
Examples:
  pinlane completions bash > ~/.local/share/bash-completion/completions/pinlane
  pinlane completions zsh > ~/.zfunc/_pinlane")]
    Completions(manual::Completions),

    /// Print the manual page, or write all pages
    #[command(after_help = "\
Examples:
  pinlane man | man -l -
  pinlane man --output ~/.local/share/man/man1")]
    Man(manual::Man),
}

#[derive(clap::Args)]
pub(crate) struct Compare {
    /// Bytes of one copy, such as 64MiB, 1GiB or 1000000
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = size::parse)]
    pub(crate) size: usize,

    /// Copies that each figure is made of
    #[arg(
        long,
        default_value_t = 5,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub(crate) repeat: u32,
}

#[derive(clap::Args)]
pub(crate) struct Selftest {
    /// Run only the cases whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// On a simulated device: take this seed's schedule instead of the plain one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
