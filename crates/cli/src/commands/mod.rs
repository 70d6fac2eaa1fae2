//! The commands and their help; each runs in its own module.

mod bench;
mod boost;
mod calibrate;
mod compare_memory;
mod completions_and_man;
mod doctor;
mod dot_product;
mod feed;
mod load;
mod overlap;
mod plan;
mod selftest;
mod trace;

use std::process::ExitStatus;

use clap::Subcommand;

use crate::command_context::CommandContext;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Compare pageable, pinned and other memory, and show whether pinning pays
    #[command(after_help = "\
Prints a summary of pageable against pinned memory, then a table. For each kind of memory the table shows
the rate in each direction, the speedup over pageable memory, the share of the link's limit, and the
allocation time.

Examples:
  pinlane compare --size 1GiB --repeat 9 --html compare.html
  pinlane --device sim:pcie5-x16 --json compare")]
    Compare(compare_memory::Args),

    /// Benchmark copies of many sizes, for every kind of memory and direction
    #[command(after_help = "\
Prints GB/s by size and kind of memory, then the latency of a 1-byte copy. The device's clock times each
copy, between two events around it. For pageable memory and the express lane this includes the host's
work. Copies in both directions are timed from the moment both are submitted; a copy in one direction
includes its own submission, which matters for small copies. Ctrl-C stops the benchmark and prints the
results so far: exit status 1, \"complete\": false.

Examples:
  pinlane bench --sizes 4KiB..1GiB*4 --memory pinned,express --csv bench.csv
  pinlane --json bench > before.json; …; pinlane bench --against before.json --fail-if-slower 5")]
    Bench(bench::Args),

    /// Run an unmodified program with its copies of ordinary memory on the express lane
    ///
    /// Works for every program that uses the CUDA driver: PyTorch, CuPy, JAX, Numba, and compiled ones with a
    /// shared or static runtime. Copies that the driver makes as fast are left to it.
    #[command(after_help = "\
Prints on standard error how many copies were seen. With --json the gains are on standard output, and the
program's output on standard error. Exits as the program
does: with its exit status or by its signal; 127 if it does not exist, 126 if it cannot be run.
PINLANE_BOOST=0 turns the library off, PINLANE_PINNED_LIMIT bounds its pinned memory.

Examples:
  pinlane boost -- python train.py
  pinlane boost --stats -- ./simulation --steps 100
  pinlane --device sim:h200 boost --stats -- ./driver-api-program")]
    Boost(boost::Args),

    /// Measure this machine and write its profile
    #[command(after_help = "\
Examples:
  pinlane calibrate
  pinlane --device cuda:1 calibrate --output my-gpu.toml")]
    Calibrate(calibrate::Args),

    /// Check whether this machine is set up for fast transfers
    ///
    /// Checks every GPU, or the one that --device names. Each GPU runs a short copy first, because idle
    /// links slow down to save power. Changes nothing. Exits with status 1 if a check fails.
    #[command(after_help = "\
Examples:
  pinlane doctor
  pinlane --device cuda:1 --json doctor")]
    Doctor,

    /// Compute a dot product from pageable memory, pinned memory and through the express lane
    #[command(after_help = "\
Examples:
  pinlane dot -n 100_000_000 --repeat 15
  pinlane --device sim:pcie3-x16 dot --kernel atomic")]
    Dot(dot_product::Args),

    /// Load weights from files to the device and, on a GPU, show the bottleneck
    #[command(after_help = "\
Prints the time from opening the files to the last tensor, the rate in GB/s, how much came from the page
cache and how much from disk, the bottleneck (disk, CPU or link), and the memory in use. On a simulated
device only the copies take simulated time, so no bottleneck is shown. Ctrl-C stops the load and prints
the results so far: exit status 1, \"complete\": false. Exits with status 2 if a file cannot be opened or
parsed, and with 1 if something fails later.

Examples:
  pinlane load model.safetensors --dtype bf16 --verify
  pinlane load ./llama --select 'model.layers.0.*' --shard 0/8 --list")]
    Load(load::Args),

    /// Run a dataset through the loader and show samples/s, GB/s and the bottleneck
    #[command(after_help = "\
Copies batches to the device ahead of time and drops them; --kernel runs a kernel on each one. Ctrl-C stops
the run and prints the results so far: exit status 1, \"complete\": false. Exits with status 2 if a source cannot
be opened or parsed, and with 1 if a bad sample is found later.

Examples:
  pinlane feed synthetic --shape 3x224x224 --batch 256 --kernel 20ms
  pinlane feed images.npy labels.npy --normalize 0.485,0.456,0.406/0.229,0.224,0.225 --to bf16
  pinlane feed shards/ --field jpg=u8:..500000 --field cls=u8:..8 --skip-bad --html feed.html
  pinlane feed shards/ --field img=u8:3x224x224 --field id=i64:

Fields of archives: cls=u8:..8 for text labels, id=i64: for 8-byte integers, img=u8:3x224x224 for raw
pixels, jpg=u8:..500000 for compressed images.")]
    Feed(Box<feed::Args>),

    /// Run one job in five ways and show what overlaps
    #[command(after_help = "\
Examples:
  pinlane overlap --html overlap.html
  pinlane --device sim:h200 overlap --size 1GiB --kernel 4ms --streams 3")]
    Overlap(overlap::Args),

    /// Find the best chunk size, streams and order for a job, and predict its time
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
    Selftest(selftest::Args),

    /// Run an unmodified program and report its copies: what they cost, what they could cost, what is wrong
    ///
    /// Sees every copy, wait and piece of pinned memory of every program that uses the CUDA driver, with the line of
    /// Python (3.11 to 3.13) or of native source that asked for it.
    #[command(after_help = "\
Prints its report on standard error. With --json it is on standard output, and the program's output on standard
error. Exits as the program does: with its exit status or by its signal; 127 if it does not exist, 126
if it cannot be run. Columns marked * are computed with the machine's profile (`pinlane calibrate`).

Examples:
  pinlane trace -- python train.py
  pinlane trace --html trace.html --trace trace.json -- ./simulation --steps 100
  pinlane --device sim:h200 trace -- ./driver-api-program")]
    Trace(trace::Args),

    /// Generate shell completions
    #[command(after_help = "\
Examples:
  pinlane completions bash > ~/.local/share/bash-completion/completions/pinlane
  pinlane completions zsh > ~/.zfunc/_pinlane")]
    Completions(completions_and_man::Completions),

    /// Print the manual page, or write the pages of all commands
    #[command(after_help = "\
Examples:
  pinlane man | man -l -
  pinlane man --output ~/.local/share/man/man1")]
    Man(completions_and_man::Man),
}

/// How a command ended.
pub(crate) enum Ending {
    /// It did its job, or the job failed.
    Job { succeeded: bool },
    /// It ran a program that ended like this.
    Program(ExitStatus),
}

/// Runs a command. `tool` is the whole command line, for completions and
/// manual pages.
pub(crate) fn run(
    command: &Command,
    context: &CommandContext<'_>,
    tool: fn() -> clap::Command,
) -> anyhow::Result<Ending> {
    let succeeded = match command {
        Command::Boost(args) => return Ok(Ending::Program(boost::run(args, context)?)),
        Command::Trace(args) => return Ok(Ending::Program(trace::run(args, context)?)),
        Command::Compare(args) => compare_memory::run(args, context),
        Command::Bench(args) => bench::run(args, context),
        Command::Calibrate(args) => calibrate::run(args, context),
        Command::Doctor => doctor::run(context),
        Command::Dot(args) => dot_product::run(args, context),
        Command::Load(args) => load::run(args, context),
        Command::Feed(args) => feed::run(args, context),
        Command::Overlap(args) => overlap::run(args, context),
        Command::Plan(args) => plan::run(args, context),
        Command::Completions(args) => completions_and_man::completions(args, tool()),
        Command::Man(args) => completions_and_man::man(args, tool()),
        Command::Selftest(args) => selftest::run(args, context),
    }?;
    Ok(Ending::Job { succeeded })
}
