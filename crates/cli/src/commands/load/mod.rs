//! `pinlane load`: weights from files to the device.

mod runs;
mod verify;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Instant;

use pinlane::load::{
    Dtype, FileInfo, Glob, HeaderError, Io, LoadConfig, LoadError, LoadErrorKind, NpyError,
    Selection, Shard, TensorInfo, Weights,
};
use pinlane::{Device, Error};
use pinlane_driver as driver;
use pinlane_report::{Load, LoadList, LoadListConverted, LoadListTensor, LoadVerify, short_size};

use crate::command_context::CommandContext;
use crate::input_error::{self, When, failed};
use crate::interrupt::Interrupt;
use crate::parse::{dtype, number, one_of};
use crate::{calibrated_profiles, output};
use runs::Runs;

const IO: [Io; 3] = [Io::Auto, Io::Buffered, Io::Direct];

/// Floating-point types that can be converted to each other.
const FLOATS: [Dtype; 4] = [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64];

const NAME_A_FILE: &str =
    "name a .safetensors or .npy file, an index (.json), or a folder with such files";

const LOAD_LESS: &str =
    "select fewer tensors with --select, rows with --shard, or a smaller type with --dtype";

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
    #[arg(long, value_name = "GLOB", value_parser = parse_pattern)]
    select: Vec<String>,

    /// Convert floating-point tensors to this type: bf16, f16, f32 or f64
    ///
    /// Names of torch work too, such as torch.bfloat16 or half. Tensors of other types, such as integers,
    /// are not converted.
    #[arg(long, value_name = "TYPE", value_parser = parse_float)]
    dtype: Option<Dtype>,

    /// Read every tensor back and compare each byte with its file
    ///
    /// With --dtype, compares with the file's numbers converted again. With --repeat, compares the tensors
    /// of the last run. Reports the first difference with its file, tensor and byte, and exits with
    /// status 1.
    #[arg(long)]
    verify: bool,

    /// How to read files
    ///
    /// If a launcher such as torchrun, mpirun or srun started several ranks on this machine, auto reads through
    /// the page cache where the files take at most half of the available memory, and each rank begins at another
    /// place: together they read the disk once.
    #[arg(long, default_value = "auto", value_name = "MODE", value_parser = one_of(&IO, io_text))]
    io: Io,

    /// Threads that read [default: the best number found by `pinlane calibrate`, or the lanes of the
    /// express lane; at most this rank's share of the CPUs]
    #[arg(long, value_name = "N", value_parser = number::within::<usize>(1..=256))]
    threads: Option<usize>,

    /// Load only the rows of one rank, such as 0/8 for the first of eight
    #[arg(long, value_name = "RANK/WORLD")]
    shard: Option<Shard>,

    /// Load this many times; each run frees its tensors first and reuses their device memory
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = number::within::<u64>(1..=1000))]
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

fn calibrated(device: &Device) -> LoadConfig {
    let info = device.info();
    match calibrated_profiles::read_cached(info) {
        Ok(cached) if info.simulated.is_none() => LoadConfig::calibrated(&cached.profile),
        _ => LoadConfig::default(),
    }
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let start = Instant::now();
    let opened = args.open();
    let weights = opened.map_err(|error| explain(error, args, When::Opening))?;
    let headers = start.elapsed();
    if args.list {
        let list = list(&weights, args.dtype);
        context.list(
            |environment| list.to_json(&environment.clone().without_device()),
            || list.to_text(),
        )?;
        return Ok(true);
    }
    let interrupt = Interrupt::listen()?;
    // The timeline stays on: the copies are read from it.
    let backend = context.device.open(|sim| sim.checks(false))?;
    let device = backend.device()?;
    let mut runs = Runs::new(args, &backend, &device, &interrupt);
    let mut report = runs.run_all(weights, headers)?;
    if args.verify && report.complete {
        report.complete = verify(&runs, &device, &interrupt, &mut report);
    }
    context.report(
        |environment| report.to_json(environment),
        || report.to_text(),
    )?;
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
    let Some((weights, tensors)) = &runs.loaded else {
        return false;
    };
    let verified = verify::verify(weights, device, tensors, interrupt);
    report.verify = Some(LoadVerify {
        tensors: verified.tensors as u64,
        failure: verified.failure.map(|error| error.to_string()),
    });
    verified.tensors == tensors.len()
}

fn io_text(io: Io) -> &'static str {
    match io {
        Io::Auto => "auto: Buffered for cached data, direct for the rest",
        Io::Buffered => "buffered: Through the page cache",
        _ => "direct: Bypassing the page cache",
    }
}

fn parse_float(text: &str) -> Result<Dtype, String> {
    dtype::one_of(text, &FLOATS)
}

fn parse_pattern(text: &str) -> Result<String, String> {
    Glob::new(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// The tensors, and what floating-point types become on the way.
fn list(weights: &Weights, to: Option<Dtype>) -> LoadList {
    let files = weights.catalog().files();
    let tensors = weights.tensors().iter().map(|tensor| LoadListTensor {
        name: tensor.name().to_owned(),
        dtype: tensor.dtype().to_string(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.len_bytes(),
        converted: converted(tensor, to),
        file: files[tensor.file()].path().display().to_string(),
    });
    let unlisted: usize = files.iter().map(FileInfo::unlisted).sum();
    LoadList::new(file_count(weights), unlisted as u64, tensors.collect())
}

fn converted(tensor: &TensorInfo, to: Option<Dtype>) -> Option<LoadListConverted> {
    let from = tensor.dtype();
    let to = to.filter(|to| *to != from && FLOATS.contains(&from))?;
    Some(LoadListConverted {
        to: to.to_string(),
        bytes: (tensor.len_bytes() / (from.bits() / 8)).saturating_mul(to.bits() / 8),
    })
}

fn file_count(weights: &Weights) -> u64 {
    let files: BTreeSet<_> = weights.tensors().iter().map(TensorInfo::file).collect();
    files.len() as u64
}

fn explain(error: LoadError, args: &Args, when: When) -> anyhow::Error {
    failed(when, message(&error, args))
}

fn message(error: &LoadError, args: &Args) -> String {
    if let Some(message) = input_error::message(error) {
        return message;
    }
    match error.kind() {
        LoadErrorKind::NoMatch { .. } | LoadErrorKind::InvalidGlob { .. } => {
            format!("--select: {error}; --list shows the names")
        }
        LoadErrorKind::RowsSplitByte { .. } => {
            let shard = args.shard.unwrap_or_default();
            let (rank, world) = (shard.rank(), shard.world());
            format!(
                "--shard {rank}/{world}: {error}; use fewer ranks, or select other tensors with --select"
            )
        }
        LoadErrorKind::Io {
            kind: ErrorKind::NotFound | ErrorKind::NotADirectory,
            ..
        }
        | LoadErrorKind::NotAFile
        | LoadErrorKind::EmptyFolder
        | LoadErrorKind::Header(
            HeaderError::TooShort { .. }
            | HeaderError::Empty
            | HeaderError::TooLarge { .. }
            | HeaderError::NotUtf8 { .. }
            | HeaderError::NotJson { .. }
            | HeaderError::NotAnObject,
        )
        | LoadErrorKind::Npy(NpyError::Magic) => with_remedy(&error.to_string(), NAME_A_FILE),
        LoadErrorKind::DirectIoUnsupported { .. } => {
            format!("--io direct: {error}; use --io auto or --io buffered")
        }
        LoadErrorKind::FileChanged => format!("{error}; load it again when it no longer changes"),
        // These already say what to do.
        _ => error.to_string(),
    }
}

fn with_remedy(message: &str, remedy: &str) -> String {
    match message.ends_with('?') {
        true => format!("{message} If not, {remedy}"),
        false => format!("{message}; {remedy}"),
    }
}

fn is_out_of_memory(error: &LoadError) -> bool {
    let LoadErrorKind::Device { error } = error.kind() else {
        return false;
    };
    matches!(&**error, Error::Driver(error) if error.kind == driver::ErrorKind::OutOfMemory)
}

/// The error of a load that does not fit on the device.
fn out_of_memory(error: LoadError, device: &Device, needed_bytes: Option<u64>) -> anyhow::Error {
    // Frees what the failed load allocated and the device kept.
    device.trim();
    let memory = match (needed_bytes, device.memory_info()) {
        (Some(needed), Ok(memory)) => format!(
            "the tensors take {} of device memory, but {} of {} are free; ",
            short_size(needed),
            short_size(memory.free_bytes),
            short_size(memory.total_bytes)
        ),
        _ => String::new(),
    };
    anyhow::anyhow!("{error}; {memory}{LOAD_LESS}")
}
