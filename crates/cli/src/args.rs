//! The words of the command line.

use clap::{Parser, Subcommand};

use crate::device::{self, Choice};
use crate::{bench, calibrate, compare, manual, plan};

/// The express lane between host memory and the GPU.
#[derive(Parser)]
#[command(
    name = "pinlane",
    version,
    after_help = "\
Examples:
  pinlane compare                        pageable against pinned memory on this machine's GPU
  pinlane --device sim:h200 selftest     check the simulated H200

Exit status: 0 done; 1 the job failed or was interrupted; 2 the words are off, or a file that they name
cannot be opened or understood. What goes wrong with a file later, such as a bad sample, one that changes
or one that --verify finds to differ, is a job that failed: 1."
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
    /// Measure pageable against pinned and other memory, and say whether pinning pays
    #[command(after_help = "\
Prints a block that compares the two, then a table: for each kind of memory its rate each way, how many
times as fast as pageable memory that is, its share of what the link can carry, and what it takes to
get such memory.

Examples:
  pinlane compare --size 1GiB --repeat 9 --html compare.html
  pinlane --device sim:pcie5-x16 --json compare")]
    Compare(compare::Args),

    /// Measure copies of many sizes, from all kinds of memory, in all directions
    #[command(after_help = "\
Prints GB/s by size and kind of memory, then the latency of a copy of 1 byte. A copy's time is taken by
the device's clock, between two events around it; for pageable memory and the express lane it holds the
host's work, too. Both ways are timed from when both are submitted, one way with its call, which shows
in small copies. Ctrl-C ends it at once and prints what it has: exit status 1, \"complete\": false.

Examples:
  pinlane bench --sizes 4KiB..1GiB*4 --memory pinned,express --csv bench.csv
  pinlane --json bench > before.json; …; pinlane bench --against before.json --fail-if-slower 5")]
    Bench(bench::Args),

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

    /// Compute a dot product from standard, from pinned memory, and by the express lane
    #[command(after_help = "\
Examples:
  pinlane dot -n 100_000_000 --repeat 15
  pinlane --device sim:pcie3-x16 dot --kernel atomic")]
    Dot(crate::dot::Args),

    /// Load weights from files to the device and, on a GPU, say what the limit was
    #[command(after_help = "\
Prints how long it takes from opening the files to all tensors ready, with GB/s, what came from the
page cache and what past it, whether disk, CPU or link was the limit, and the memory in use. On a
simulated device only the copies take simulated time, so no limit is told there. Ctrl-C ends it at once and
prints what it has: exit status 1, \"complete\": false. A file that cannot be opened or understood is exit
status 2; what goes wrong later is 1.

Examples:
  pinlane load model.safetensors --dtype bf16 --verify
  pinlane load ./llama --select 'model.layers.0.*' --shard 0/8 --list")]
    Load(crate::load::Args),
    /// Run a dataset through the loader: samples/s, GB/s, and which stage limits
    #[command(after_help = "\
Batches are copied ahead and dropped, or worked on for the time that --kernel says. Ctrl-C ends it at once and
prints what was done: exit status 1, \"complete\": false. A source that cannot be opened or understood is
exit status 2; a bad sample in it, found later, is 1.

Examples:
  pinlane feed synthetic --shape 3x224x224 --batch 256 --kernel 20ms
  pinlane feed images.npy labels.npy --normalize 0.485,0.456,0.406/0.229,0.224,0.225 --to bf16
  pinlane feed shards/ --field jpg=u8:..500000 --field cls=u8:..8 --skip-bad --html feed.html
  pinlane feed shards/ --field img=u8:3x224x224 --field id=i64:

In archives cls=u8:..8 is for labels in text, id=i64: for integers of 8 bytes, img=u8:3x224x224 for images
that are pixels, jpg=u8:..500000 for images that are compressed.")]
    Feed(Box<crate::feed::Args>),

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
pub(crate) struct Selftest {
    /// Run only the cases whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// On a simulated device: take this seed's schedule instead of the plain one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
