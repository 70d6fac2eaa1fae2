//! The dataset to read.

use std::path::Path;
use std::{panic, thread};

use anyhow::{Context, bail};
use pinlane::load::{
    Arrays, Dataset, Dtype, Field, HeaderError, LoadError, LoadErrorKind, OtherFormat, SampleError,
    SampleMut, Tar, TarConfig, TarError,
};
use pinlane_model::SplitMix64;

use super::Args;
use crate::input_error::{self, UsageError, When, failed};
use crate::interrupt::Interrupt;
use crate::system;

const SYNTHETIC: &str = "synthetic";

/// The usual shape of an image.
const SHAPE: [usize; 3] = [3, 224, 224];

/// Default number of synthetic samples: more than caches hold. A simulated device moves real bytes, so it gets
/// fewer.
const SAMPLES: usize = 20_000;
const SAMPLES_SIMULATED: usize = 1024;

/// Bytes that a thread fills between checks for an interrupt.
const BLOCK_BYTES: usize = 1 << 20;

#[derive(PartialEq, Eq)]
enum SourceKind {
    Synthetic,
    Arrays,
    Tar,
}

/// Fails if arguments contradict each other, before anything is opened.
pub(super) fn check(args: &Args) -> Result<(), UsageError> {
    let kind = kind(args)?;
    if kind != SourceKind::Synthetic {
        check_paths(args, &kind)?;
        for (flag, given) in [
            ("--shape", args.shape.is_some()),
            ("--samples", args.samples.is_some()),
            ("--dtype", args.dtype.is_some()),
        ] {
            if given {
                return wrong(format!("{flag} is only for SOURCE synthetic; drop it"));
            }
        }
    }
    match (kind, args.field.is_empty()) {
        (SourceKind::Tar, true) => wrong(
            "archives need a --field for each extension to read, such as --field img=u8:3x224x224 --field \
             cls=u8:..8 (text of up to 8 bytes)",
        ),
        (SourceKind::Synthetic | SourceKind::Arrays, false) => wrong(no_archive(args)),
        _ => Ok(()),
    }
}

/// A file in a known format that cannot be read, such as a compressed archive, and what to do about it.
fn other_format(args: &Args) -> Option<String> {
    let mut paths = args.source.iter().filter(|path| !is_tar(Path::new(path)));
    paths.find_map(|path| {
        let found = OtherFormat::of(path).filter(|found| *found != OtherFormat::Npy)?;
        let reason = LoadErrorKind::OtherFormat { found };
        Some(format!("cannot read SOURCE: {path}: {reason}"))
    })
}

/// The error for --field without an archive.
fn no_archive(args: &Args) -> String {
    if let Some(reason) = other_format(args) {
        return reason;
    }
    let mut paths = args.source.iter();
    let Some(folder) = paths.find(|path| Path::new(path).is_dir()) else {
        return "--field is only for tar archives; drop it, or name .tar files as SOURCE"
            .to_owned();
    };
    let remedy = input_error::other_format_in(Path::new(folder));
    let remedy = remedy.unwrap_or("name a folder with .tar files, or drop --field".to_owned());
    format!("--field is only for tar archives, but SOURCE {folder} has no .tar file; {remedy}")
}

fn check_paths(args: &Args, kind: &SourceKind) -> Result<(), UsageError> {
    for (number, word) in args.source.iter().enumerate() {
        let path = Path::new(word);
        if let Err(error) = path.metadata() {
            return wrong(format!(
                "cannot open SOURCE {word}: {error}; name existing files, or synthetic"
            ));
        }
        let mut before = args.source[..number].iter().map(Path::new);
        // Reading an archive twice as often as others is fine.
        if *kind == SourceKind::Arrays && before.any(|other| input_error::is_same(path, other)) {
            return wrong(format!("SOURCE names {word} twice; name it once"));
        }
    }
    Ok(())
}

pub(super) fn no_samples(args: &Args) -> UsageError {
    let remedy = match args.field.is_empty() {
        true => "name files with rows",
        false => "name archives with files such as 0001.jpg and 0001.cls",
    };
    let source = args.source.join(", ");
    UsageError(format!("SOURCE {source} has no samples; {remedy}"))
}

fn explain(error: LoadError) -> anyhow::Error {
    if let LoadErrorKind::Tar(TarError::NoSuchExtension { .. }) = error.kind() {
        let message = format!("--field: {error}; use one of these");
        return failed(When::Opening, message);
    }
    let message = input_error::message(&error).unwrap_or_else(|| match error.kind() {
        LoadErrorKind::EmptyFolder => {
            let folder = error.file().unwrap_or(Path::new("")).display();
            format!("{folder}: the folder has no .tar, .npy or .safetensors file; name another")
        }
        // These already say what to do.
        LoadErrorKind::Tar(TarError::Compressed { .. })
        | LoadErrorKind::Header(HeaderError::TooLarge { .. }) => error.to_string(),
        _ => format!("{error}; name other files"),
    });
    failed(When::Opening, format!("cannot read SOURCE: {message}"))
}

pub(super) fn open(
    args: &Args,
    simulated: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Box<dyn Dataset>> {
    Ok(match kind(args)? {
        SourceKind::Synthetic => Box::new(synthetic(args, simulated, interrupt)?),
        SourceKind::Arrays => {
            let (first, others) = args.source.split_first().expect("clap requires a source");
            let open = |path| Arrays::open(path).map_err(explain);
            let mut all = open(first)?;
            for path in others {
                all = all.and(open(path)?).map_err(explain)?;
            }
            Box::new(all)
        }
        SourceKind::Tar => {
            let config = args.field.iter().fold(TarConfig::new(), |config, field| {
                config.field(field.name(), field.clone())
            });
            Box::new(Tar::open(&args.source, config).map_err(explain)?)
        }
    })
}

fn kind(args: &Args) -> Result<SourceKind, UsageError> {
    if args.source.iter().any(|word| word == SYNTHETIC) {
        return match args.source.len() {
            1 => Ok(SourceKind::Synthetic),
            _ => wrong(
                "synthetic cannot be combined with files; use ./synthetic for a file of that name",
            ),
        };
    }
    let archives = args.source.iter().filter(|path| is_tar(Path::new(path)));
    match archives.count() {
        0 => Ok(SourceKind::Arrays),
        all if all == args.source.len() => Ok(SourceKind::Tar),
        _ => wrong(
            other_format(args)
                .unwrap_or("SOURCE mixes archives and other files; use only one kind".to_owned()),
        ),
    }
}

/// Whether the path is named like an archive, or a folder with one.
fn is_tar(path: &Path) -> bool {
    let named = |path: &Path| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
    };
    if !path.is_dir() {
        return named(path);
    }
    // Opening the folder reports if it cannot be read.
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| named(&path))
}

fn wrong<T>(reason: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(reason.into()))
}

/// Creates random samples in pageable memory. Stops filling them on an interrupt.
fn synthetic(args: &Args, simulated: bool, interrupt: &Interrupt) -> anyhow::Result<Arrays> {
    let shape = args.shape.clone().unwrap_or(SHAPE.to_vec());
    let dtype = args.dtype.unwrap_or(Dtype::U8);
    let samples = args.samples.unwrap_or(match simulated {
        true => SAMPLES_SIMULATED,
        false => SAMPLES,
    });
    let sample_bytes = sample_bytes(dtype, &shape)?;
    let bytes = total_bytes(samples, sample_bytes)?;
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    reserved.context("--samples: not enough memory; use fewer samples")?;
    // Zeroed pages are allocated when the threads below touch them.
    let mut memory = vec![0; bytes];
    fill(&mut memory, interrupt);
    let field = Field::fixed("data", dtype, shape);
    Ok(Arrays::from_memory(samples, [(field, memory)])?)
}

fn sample_bytes(dtype: Dtype, shape: &[usize]) -> Result<usize, UsageError> {
    let mut dims = shape.iter();
    let bits = dims.try_fold(dtype.bits() as usize, |bits, dim| bits.checked_mul(*dim));
    match bits {
        None => wrong("--shape: a sample is too large for memory; use smaller dimensions"),
        Some(bits) if !bits.is_multiple_of(8) => wrong(format!(
            "--shape: a sample of {} would end inside a byte; use an even number of elements",
            dtype.name().to_ascii_lowercase()
        )),
        Some(bits) => Ok(bits / 8),
    }
}

/// Fails if the samples do not fit into memory.
fn total_bytes(samples: usize, sample_bytes: usize) -> anyhow::Result<usize> {
    let room = system::usable_bytes(system::available_bytes());
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    match samples.checked_mul(sample_bytes) {
        Some(bytes) if bytes <= room => Ok(bytes),
        _ => {
            let most = room / sample_bytes.max(1);
            bail!(
                "{samples} samples of {sample_bytes} bytes do not fit into memory; use --samples {most} or \
                 less, or a smaller --shape"
            )
        }
    }
}

fn fill(memory: &mut [u8], interrupt: &Interrupt) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = memory.len().div_ceil(threads).max(BLOCK_BYTES);
    thread::scope(|scope| {
        for (thread, part) in memory.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread as u64);
                for block in part.chunks_mut(BLOCK_BYTES) {
                    if interrupt.is_raised() {
                        return;
                    }
                    for word in block.chunks_mut(8) {
                        word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
                    }
                }
            });
        }
    });
}

/// A dataset that ends the epoch between two samples on an interrupt: a large batch may take minutes.
pub(super) struct Interruptible<D> {
    pub(super) dataset: D,
    pub(super) interrupt: Interrupt,
}

impl<D: Dataset> Dataset for Interruptible<D> {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn fields(&self) -> &[Field] {
        self.dataset.fields()
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        if self.interrupt.is_raised() {
            // With --skip-bad an error would only skip the sample. A panic ends the epoch, and
            // `resume_unwind` does not call the panic hook.
            panic::resume_unwind(Box::new("interrupted"));
        }
        self.dataset.read(index, sample)
    }

    fn origin(&self, index: usize) -> String {
        self.dataset.origin(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinlane::Device;
    use pinlane::load::{Dtype, Loader, LoaderConfig, LoaderError, OnError, dataset};
    use pinlane_model::Profile;
    use pinlane_sim::Sim;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn an_interrupt_is_noticed_in_the_middle_of_a_batch() {
        let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
        let device = Device::open(&sim, 0).expect("a device");
        for on_error in [OnError::Fail, OnError::Skip] {
            let raised = Arc::new(AtomicBool::new(false));
            let interrupt = Interrupt(Arc::clone(&raised));
            let read = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&read);
            let fields = [Field::fixed("a", Dtype::U8, [])];
            let samples = dataset::from_fn(1000, fields, move |index, sample| {
                sample.fixed(0).fill(0);
                count.fetch_add(1, Ordering::Relaxed);
                if index == 10 {
                    raised.store(true, Ordering::Relaxed);
                }
                Ok(())
            });
            let config = LoaderConfig::default().batch(1000).workers(0);
            let config = config.on_error(on_error);
            let dataset = Interruptible {
                dataset: samples,
                interrupt,
            };
            let loader = Loader::new(&device, dataset, config).expect("a loader");
            let mut epoch = loader.epoch(0).expect("an epoch");
            let batch = epoch.next().expect("an outcome");
            assert!(matches!(batch, Err(LoaderError::DatasetPanicked { .. })));
            assert_eq!(read.load(Ordering::Relaxed), 11);
            assert_eq!(loader.stats().skipped, 0);
        }
    }
}
