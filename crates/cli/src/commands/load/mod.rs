//! `pinlane load`: weights from files to the device.

mod errors;
mod list;
mod parse;
mod runs;
mod sim_copies;
mod verify;

use std::path::PathBuf;
use std::time::Instant;

use pinlane::Device;
use pinlane::load::{Dtype, Io, LoadConfig, LoadError, Selection, Shard, Weights};
use pinlane_report::{Load, LoadVerify};

use crate::cli::Cli;
use crate::input_error::When;
use crate::interrupt::Interrupt;
use crate::parse::{names, number};
use crate::{output, profile_cache};
use runs::Runs;

const IO: [(&str, Io, &str); 3] = [
    (
        "auto",
        Io::Auto,
        "Buffered for cached data, direct for the rest",
    ),
    ("buffered", Io::Buffered, "Through the page cache"),
    ("direct", Io::Direct, "Bypassing the page cache"),
];

#[derive(clap::Args)]
#[command(mut_args(number::allow_negative))]
pub(crate) struct Args {
    /// Files to load: .safetensors, .npy, an index (.json), or a folder with such files
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,

    /// Load only tensors whose names match this pattern, such as 'model.layers.0.*'
    ///
    /// In a pattern, * matches any text, ? one character, [0-9] one character of a set. May be repeated to
    /// load tensors that match any of the patterns. A pattern that matches nothing is an error.
    #[arg(long, value_name = "GLOB", value_parser = parse::pattern)]
    select: Vec<String>,

    /// Convert floating-point tensors to this type: bf16, f16, f32 or f64
    ///
    /// Names of torch work too, such as torch.bfloat16 or half. Tensors of other types, such as integers,
    /// are not converted.
    #[arg(long, value_name = "TYPE", value_parser = parse::float)]
    dtype: Option<Dtype>,

    /// Read every tensor back and compare each byte with its file
    ///
    /// With --dtype, compares with the file's numbers converted again. With --repeat, compares the tensors
    /// of the last run. Reports the first difference with its file, tensor and byte, and exits with
    /// status 1.
    #[arg(long)]
    verify: bool,

    /// How to read files
    #[arg(long, default_value = "auto", value_name = "MODE", value_parser = names::one_of(&IO))]
    io: Io,

    /// Threads that read [default: the best number found by `pinlane calibrate`, or the lanes of the
    /// express lane]
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    threads: Option<usize>,

    /// Load only the rows of one rank, such as 0/8 for the first of eight
    #[arg(long, value_name = "RANK/WORLD", value_parser = parse::shard)]
    shard: Option<Shard>,

    /// Load this many times; each run frees its tensors first and reuses their device memory
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = parse::repeat)]
    repeat: u64,

    /// List the names, types, shapes, sizes and files of the tensors, without loading them
    ///
    /// Needs no device. With --dtype, also shows the converted types.
    #[arg(long, conflicts_with_all = ["verify", "io", "threads", "repeat"])]
    list: bool,
}

impl Args {
    /// Reads the headers and selects tensors.
    fn open(&self) -> Result<Weights, LoadError> {
        let mut selection = Selection::new();
        for pattern in &self.select {
            selection = selection.glob(pattern)?;
        }
        let weights = Weights::open_all(&self.files)?.select(&selection)?;
        match self.shard {
            Some(shard) => weights.shard(shard.rank() as u64, shard.world() as u64),
            None => Ok(weights),
        }
    }

    fn config(&self, device: &Device) -> LoadConfig {
        let mut config = match self.dtype {
            // Calibration does not cover conversions, which are more work.
            None => calibrated(device),
            Some(_) => LoadConfig::default(),
        };
        config.io = self.io;
        config.threads = self.threads.or(config.threads);
        config.convert = self.dtype;
        config
    }
}

/// The configuration of a calibrated GPU, or the default.
fn calibrated(device: &Device) -> LoadConfig {
    let info = device.info();
    let cached = match info.simulated {
        Some(_) => None,
        None => profile_cache::read(info).ok(),
    };
    cached.map_or_else(LoadConfig::default, |cached| {
        LoadConfig::calibrated(&cached.profile)
    })
}

pub(crate) fn run(args: &Args, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    let start = Instant::now();
    let weights = args
        .open()
        .map_err(|error| errors::explain(error, args, When::Opening))?;
    let headers = start.elapsed();
    if args.list {
        let list = list::list(&weights, args.dtype);
        cli.report(|| list.to_json(), || list.to_text())?;
        return Ok(true);
    }
    let interrupt = Interrupt::listen()?;
    // The timeline stays on: the copies are read from it.
    let backend = cli.device.open(|sim| sim.checks(false))?;
    let device = backend.device()?;
    let mut runs = Runs::new(args, &backend, &device, &interrupt);
    let mut report = runs.run_all(weights, headers)?;
    if args.verify && report.complete {
        report.complete = verify(&runs, &device, &interrupt, &mut report);
    }
    cli.report(|| report.to_json(), || report.to_text())?;
    let failure = report.verify.as_ref().and_then(|it| it.failure.as_ref());
    if let Some(failure) = failure {
        output::complain(&format!("error: --verify: {failure}"));
    } else if !report.complete {
        output::complain("interrupted before the end");
    }
    Ok(report.complete && failure.is_none())
}

/// Compares the loaded tensors with their files. Returns whether all were compared.
fn verify(runs: &Runs<'_>, device: &Device, interrupt: &Interrupt, report: &mut Load) -> bool {
    let Some((weights, tensors)) = runs.loaded() else {
        return false;
    };
    let verified = verify::verify(weights, device, tensors, interrupt);
    report.verify = Some(LoadVerify {
        tensors: verified.tensors as u64,
        failure: verified.failure.map(|error| error.to_string()),
    });
    verified.tensors == tensors.len()
}
