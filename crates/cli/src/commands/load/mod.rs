//! `pinlane load`: weights in files to the device, as fast as the slowest part allows.

mod list;
mod progress;
mod runs;
mod simulated;
mod trouble;
mod verify;
mod words;

use std::path::PathBuf;
use std::time::Instant;

use pinlane::Device;
use pinlane::load::{Dtype, LoadConfig, LoadError, Selection, Weights};
use pinlane_report::{Load, LoadVerify};

use crate::device::{self, Choice, Chosen};
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::profile_cache;
use crate::source_file::When;
use runs::Runs;
use simulated::Simulated;
use words::{Io, Shard};

/// The words of `pinlane load`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files to load: .safetensors, .npy, an index (.json), or a folder with such files
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,

    /// Load only tensors whose names are of this pattern, such as 'model.layers.0.*'
    ///
    /// In patterns * stands for any text, ? for one character, [0-9] for one of these. Repeated,
    /// tensors of any of the patterns are loaded. A pattern that matches nothing is an error.
    #[arg(long, value_name = "GLOB", value_parser = words::pattern)]
    select: Vec<String>,

    /// Turn floating-point numbers into this type on the way: bf16, f16, f32 or f64
    ///
    /// Torch's names are known, too, such as torch.bfloat16 or half. Tensors of other types, such as
    /// integers, stay as they are.
    #[arg(long, value_name = "TYPE", value_parser = words::float)]
    dtype: Option<Dtype>,

    /// Read every tensor back and compare each byte with its file
    ///
    /// With --dtype it is compared with what the file's numbers become when they are converted again.
    /// With --repeat the tensors of the last run are compared. The first difference is told with file,
    /// tensor and byte: exit status 1.
    #[arg(long)]
    verify: bool,

    /// How files are read: through the page cache what is in it and past it what is not, or all in
    /// one way
    #[arg(long, value_enum, default_value = "auto", value_name = "WAY")]
    io: Io,

    /// Threads that read [default: as many as `pinlane calibrate` found best, or as the express lane has
    /// lanes]
    #[arg(
        long,
        value_name = "N",
        value_parser = words::threads,
        allow_negative_numbers = true
    )]
    threads: Option<u32>,

    /// Load only the rows of one rank of several, such as 0/8 for the first of eight
    #[arg(long, value_name = "RANK/WORLD", value_parser = words::shard)]
    shard: Option<Shard>,

    /// Load so many times, each when the tensors of the run before are gone, into the memory on the device
    /// that they had
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = words::repeat,
        allow_negative_numbers = true
    )]
    repeat: u32,

    /// Print names, types, shapes, bytes and files of the tensors, and load nothing: no device is
    /// needed; with --dtype also what types become
    #[arg(long, conflicts_with_all = ["verify", "io", "threads", "repeat"])]
    list: bool,
}

impl Args {
    /// Read headers, and choose what is wanted.
    fn open(&self) -> Result<Weights, LoadError> {
        let mut selection = Selection::new();
        for pattern in &self.select {
            selection = selection.glob(pattern)?;
        }
        let weights = Weights::open_all(&self.files)?.select(&selection)?;
        match self.shard {
            Some(shard) => weights.shard(shard.rank, shard.world),
            None => Ok(weights),
        }
    }

    fn config(&self, device: &Device) -> LoadConfig {
        let mut config = match self.dtype {
            // Conversions are more work than what was calibrated.
            None => calibrated(device),
            Some(_) => LoadConfig::default(),
        };
        config.io = self.io.into();
        if let Some(threads) = self.threads {
            config.threads = Some(threads as usize);
        }
        config.convert = self.dtype;
        config
    }
}

/// What the calibration of a GPU says, if there is one.
fn calibrated(device: &Device) -> LoadConfig {
    let info = device.info();
    let named = match info.simulated {
        Some(_) => None,
        None => profile_cache::read(info).ok(),
    };
    named.map_or_else(LoadConfig::default, |named| {
        LoadConfig::calibrated(&named.profile)
    })
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let began = Instant::now();
    let weights = args
        .open()
        .map_err(|error| trouble::told(error, args, When::Opening))?;
    let headers = began.elapsed();
    if args.list {
        let list = list::of(&weights, args.dtype);
        output.print(&if json { list.to_json() } else { list.to_text() })?;
        return Ok(true);
    }
    let interrupt = Interrupt::listen()?;
    let chosen = device::choose(choice)?;
    let profile = match &chosen {
        Chosen::Sim(profile) => Some(profile.as_ref().clone()),
        Chosen::Cuda { .. } => None,
    };
    // The checks look for mistakes of the caller, which the library rules out, and cost more than
    // copying does.
    let target = device::start(chosen, |sim| sim.checks(false));
    let device = Device::open(target.platform(), target.ordinal())?;
    let simulated = target.sim().zip(profile);
    let simulated = simulated.map(|(sim, profile)| Simulated::new(sim, profile));
    let mut runs = Runs::new(args, &device, simulated, &interrupt);
    let mut report = runs.all(weights, headers)?;
    if args.verify && report.complete {
        report.complete = verify(&runs, &device, &interrupt, &mut report);
    }
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text()
    })?;
    Ok(end(&report))
}

/// Whether all was compared.
fn verify(runs: &Runs<'_>, device: &Device, interrupt: &Interrupt, report: &mut Load) -> bool {
    let Some((weights, tensors)) = runs.loaded() else {
        return false;
    };
    let went = verify::all(weights, device, tensors, interrupt);
    report.verify = Some(LoadVerify {
        tensors: went.tensors as u64,
        failure: went.failure.map(|error| error.to_string()),
    });
    went.tensors == tensors.len()
}

/// Whether all went well; else why not.
fn end(report: &Load) -> bool {
    let failure = report.verify.as_ref().and_then(|it| it.failure.as_ref());
    match failure {
        Some(failure) => output::complain(&format!("error: --verify: {failure}")),
        None if !report.complete => output::complain("interrupted: not all was done"),
        None => {}
    }
    report.complete && failure.is_none()
}
