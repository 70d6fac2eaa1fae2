//! `pinlane feed`: a dataset through the loader, as fast as it goes.

mod consumer;
mod course;
mod latency;
mod normalize;
mod progress;
mod report;
mod shard;
mod source;
mod synthetic;
mod trouble;
mod watched;
mod words;

use std::path::PathBuf;

use pinlane::Device;
use pinlane::load::{Dataset, Dtype, Loader, LoaderConfig, OnError};
use pinlane_report::Feed;

use crate::device::{self, Choice, Target};
use crate::dtype;
use crate::file;
use crate::interrupt::Interrupt;
use crate::measure::Clock;
use crate::number;
use crate::output::{self, Output};
use consumer::Consumer;
use course::{Course, End};
use normalize::Normalized;
use watched::Watched;
use words::{TarField, To};

/// How long it runs where nothing is said of it.
const TIME_NS: u64 = 5_000_000_000;

/// The words of `pinlane feed`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to feed: `synthetic`; npy or safetensors files or a folder of them; or tar archives
    ///
    /// `synthetic` stands for random bytes in memory, see --shape, --samples and --dtype. Several npy or
    /// safetensors files are fields of the same samples, side by side. Tar archives, or a folder of
    /// them, are laid out as WebDataset does and need --field.
    #[arg(required = true, value_name = "SOURCE")]
    source: Vec<String>,

    /// Samples of a batch
    #[arg(
        long,
        default_value_t = 256,
        value_name = "N",
        value_parser = number::at_least_1,
        allow_negative_numbers = true
    )]
    batch: usize,

    /// Take samples as they are numbered, instead of in another order in each epoch
    #[arg(long, overrides_with = "shuffle")]
    no_shuffle: bool,

    /// Take samples in another order in each epoch: this is the default
    #[arg(long)]
    shuffle: bool,

    /// Decides the order: the same number, the same order
    #[arg(
        long,
        default_value_t = 0,
        value_name = "N",
        value_parser = words::seed,
        allow_negative_numbers = true
    )]
    seed: u64,

    /// Threads that read samples; with 0 the thread that asks for batches does
    ///
    /// [default: three of four CPUs; 0 on a simulated device]
    #[arg(long, value_name = "N", value_parser = words::workers, allow_negative_numbers = true)]
    workers: Option<usize>,

    /// Batches that are made ready ahead
    #[arg(
        long,
        default_value_t = 3,
        value_name = "N",
        value_parser = words::prefetch,
        allow_negative_numbers = true
    )]
    prefetch: usize,

    /// Run so many epochs [default: as many as --time allows; one on a simulated device]
    #[arg(long, value_name = "N", value_parser = words::epochs, allow_negative_numbers = true)]
    epochs: Option<u64>,

    /// Stop after this time, such as 5s [default: 5s, unless --epochs is given]
    ///
    /// On a simulated device it is time of the simulated clock.
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    time: Option<u64>,

    /// Let the GPU work for this long on each batch, such as 20ms, and say how long it stands idle
    #[arg(long, value_name = "TIME", value_parser = words::kernel)]
    kernel: Option<u64>,

    /// Leave out samples that cannot be read, and count them
    #[arg(long)]
    skip_bad: bool,

    /// Make numbers of a field of u8 on the device: means, a slash, standard deviations
    ///
    /// Each byte x becomes (x / 255 - mean) / std, so that means and deviations are those of numbers
    /// from 0 to 1. One of each for every channel, such as 0.485,0.456,0.406/0.229,0.224,0.225.
    /// Channels are the first dimension of a sample or else the last. FIELD= in front names the field
    /// where there are several of u8.
    #[arg(long, value_name = "[FIELD=]MEAN,…/STD,…", value_parser = words::factors)]
    normalize: Option<words::Factors>,

    /// With --normalize: what comes of it, f32 or bf16
    #[arg(
        long,
        value_name = "TYPE",
        requires = "normalize",
        default_value = "f32",
        value_parser = words::to
    )]
    to: To,

    /// Which process of all that share the dataset, from 0; with --world
    ///
    /// [default: as torchrun, Open MPI, PMI or SLURM say; else all samples are for this one]
    #[arg(
        long,
        value_name = "N",
        requires = "world",
        value_parser = number::at_least_0,
        allow_negative_numbers = true
    )]
    rank: Option<usize>,

    /// How many processes share the dataset; with --rank
    ///
    /// Each has as many samples: where they do not share out evenly, some come twice.
    #[arg(
        long,
        value_name = "N",
        requires = "rank",
        value_parser = number::at_least_1,
        allow_negative_numbers = true
    )]
    world: Option<usize>,

    /// Files in tar archives that are a field of the samples: extension, type, shape; may be repeated
    ///
    /// Bytes are taken as they are in the archive, nothing is decoded. cls=u8:..8 is for text of up to 8
    /// bytes, such as a label 281; id=i64: for a number of 8 bytes, little-endian; img=u8:3x224x224 for
    /// pixels; jpg=u8:..500000 for images as they are compressed, up to so many bytes.
    #[arg(long, value_name = "EXT=TYPE:SHAPE", value_parser = words::tar_field)]
    field: Vec<TarField>,

    /// Shape of a synthetic sample [default: 3x224x224]
    #[arg(long, value_name = "SHAPE", value_parser = words::shape)]
    shape: Option<words::Shape>,

    /// Synthetic samples [default: 20000, on a simulated device 1024]
    #[arg(long, value_name = "N", value_parser = number::at_least_1, allow_negative_numbers = true)]
    samples: Option<usize>,

    /// Type of the elements of a synthetic sample [default: u8]
    #[arg(long, value_name = "TYPE", value_parser = dtype::any)]
    dtype: Option<Dtype>,

    /// Also write a page to open in a browser; it needs no network
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    html: Option<PathBuf>,
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    source::check(args)?;
    file::check(&[("--html", &args.html)])?;
    let shard = shard::of(args)?;
    let interrupt = Interrupt::listen()?;
    let (target, _) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let simulated = device.info().simulated.is_some();
    let dataset = source::open(args, simulated, &interrupt)?;
    let normalized = match &args.normalize {
        Some(factors) => Some(Normalized::new(factors, args.to, dataset.fields())?),
        None => None,
    };
    let config = LoaderConfig {
        batch: args.batch,
        shuffle: !args.no_shuffle,
        seed: args.seed,
        shard,
        // Threads of this machine would run beside a clock that does not know of them.
        workers: args.workers.or(simulated.then_some(0)),
        prefetch: args.prefetch,
        on_error: match args.skip_bad {
            true => OnError::Skip,
            false => OnError::Fail,
        },
        finish: normalized.iter().map(Normalized::step).collect(),
        ..LoaderConfig::default()
    };
    let job = report::job(args, &dataset, &config, normalized.as_ref());
    if dataset.is_empty() {
        return Err(source::no_samples(args).into());
    }
    let dataset = Watched::new(dataset, &interrupt);
    let loader =
        Loader::new(&device, dataset, config).map_err(|error| trouble::explained(error, args))?;
    let report = feed(&target, &device, &loader, args, job, &interrupt)?;
    let written = match &args.html {
        Some(path) => file::write_text(path, &report.to_html()),
        None => Ok(()),
    };
    output.print(&match json {
        true => report.to_json(),
        false => report.to_text(),
    })?;
    // What was done is shown even where a file could not be written.
    written?;
    output.written([&args.html], json)?;
    if !report.complete {
        output::complain("interrupted: not all was fed");
    } else if report.all_skipped() {
        output::complain(&format!("error: {}", trouble::all_bad(&report, args)));
    }
    Ok(report.complete && !report.all_skipped())
}

fn feed(
    target: &Target,
    device: &Device,
    loader: &Loader,
    args: &Args,
    job: pinlane_report::FeedJob,
    interrupt: &Interrupt,
) -> anyhow::Result<Feed> {
    let simulated = device.info().simulated.is_some();
    let end = match (args.epochs, args.time) {
        (None, None) if simulated => End::epochs(1),
        (None, None) => End::time(TIME_NS),
        (epochs, time_ns) => End { epochs, time_ns },
    };
    let consumer = match args.kernel {
        Some(kernel_ns) => Some(Consumer::new(device, kernel_ns)?),
        None => None,
    };
    let clock = Clock::of(target);
    let mut course = Course::new(device, loader, &clock, end, consumer, interrupt);
    let went = course.run().map_err(|error| match error.downcast() {
        Ok(error) => trouble::explained(error, args),
        Err(error) => error,
    })?;
    let stats = loader.stats();
    let pinned_bytes = device.stats().pinned_bytes;
    let mut report = report::feed(target, device, loader, job, &went, &stats);
    report.complete = went.complete;
    report.pinned_bytes = pinned_bytes;
    Ok(report)
}
