//! Arguments of `pinlane feed`.

use std::path::PathBuf;

use pinlane::Normalize;
use pinlane::load::{Dtype, Field, Shard};
use pinlane_report::FeedTarget;

use crate::output_file;
use crate::parse::{List, dtype, duration, number};

/// Default duration on a real device.
const TIME_NS: u64 = 5_000_000_000;

/// A longer kernel would delay Ctrl-C.
const KERNEL_NS_MAX: u64 = 400_000_000;

#[derive(clap::Args)]
#[command(mut_args(number::allow_negative))]
pub(crate) struct Args {
    /// Dataset: `synthetic`; npy or safetensors files, or a folder of them; or tar archives
    ///
    /// `synthetic` is random bytes in memory; see --shape, --samples and --dtype. Several npy or
    /// safetensors files are fields of the same samples. Tar archives, or a folder of them, use the
    /// WebDataset layout and need --field.
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) source: Vec<String>,

    /// Samples per batch
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = number::at_least_1)]
    pub(super) batch: usize,

    /// Read samples in order
    #[arg(long, overrides_with = "shuffle")]
    pub(super) no_shuffle: bool,

    /// Shuffle the samples in each epoch (the default)
    #[arg(long)]
    pub(super) shuffle: bool,

    /// Seed of the shuffle
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = number::within::<u64>(0..=u64::MAX))]
    pub(super) seed: u64,

    /// Threads that read samples; 0 reads on the consumer's thread
    ///
    /// [default: three quarters of the CPUs; 0 on a simulated device]
    #[arg(long, value_name = "N", value_parser = number::within::<usize>(0..=256))]
    pub(super) workers: Option<usize>,

    /// Batches to prepare ahead
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = number::within::<usize>(1..=1024))]
    pub(super) prefetch: usize,

    /// Stop after this many epochs [default: as many as fit into --time; 1 on a simulated device]
    #[arg(long, value_name = "N", value_parser = number::within::<u64>(1..=u64::MAX))]
    pub(super) epochs: Option<u64>,

    /// Stop after this time, such as 5s [default: 5s, unless --epochs is given]
    ///
    /// On a simulated device this is simulated time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) time: Option<u64>,

    /// Run a kernel of this length on each batch, such as 20ms, and show how long the GPU is idle
    #[arg(long, value_name = "TIME", value_parser = parse_kernel)]
    pub(super) kernel: Option<u64>,

    /// Skip and count samples that cannot be read
    #[arg(long)]
    pub(super) skip_bad: bool,

    /// Normalize a u8 field on the device: means, a slash, standard deviations
    ///
    /// Each byte x becomes (x / 255 - mean) / std, so means and deviations refer to values from 0 to 1.
    /// Give one of each per channel, such as 0.485,0.456,0.406/0.229,0.224,0.225. Channels are the first
    /// dimension of a sample, or else the last. If there are several u8 fields, put FIELD= in front.
    #[arg(long, value_name = "[FIELD=]MEAN,…/STD,…", value_parser = parse_mean_std)]
    pub(super) normalize: Option<MeanStd>,

    /// Type of the normalized field: f32 or bf16
    #[arg(
        long,
        value_name = "TYPE",
        requires = "normalize",
        default_value = "f32",
        value_parser = parse_normalized_type
    )]
    pub(super) to: Dtype,

    /// Read only the samples of one rank, such as 0/8 for the first of eight
    ///
    /// Every rank reads the same number of samples. If they do not divide evenly, some are read twice.
    ///
    /// [default: from torchrun, Open MPI, PMI or SLURM; otherwise this process reads all samples]
    #[arg(long, value_name = "RANK/WORLD")]
    pub(super) shard: Option<Shard>,

    #[arg(long = "rank", hide = true, value_parser = refuse_rank)]
    _rank: Option<String>,

    #[arg(long = "world", hide = true, value_parser = refuse_rank)]
    _world: Option<String>,

    /// Field of tar archives: extension, type and shape of its files; may be repeated
    ///
    /// Bytes are used as they are in the archive; nothing is decoded. cls=u8:..8 is text of up to 8 bytes,
    /// such as the label 281; id=i64: an 8-byte little-endian integer; img=u8:3x224x224 raw pixels;
    /// jpg=u8:..500000 compressed images of up to 500000 bytes.
    #[arg(long, value_name = "EXT=TYPE:SHAPE", value_parser = parse_tar_field)]
    pub(super) field: Vec<Field>,

    /// Shape of a synthetic sample [default: 3x224x224]
    #[arg(long, value_name = "SHAPE", value_parser = parse_shape)]
    pub(super) shape: Option<List<usize>>,

    /// Number of synthetic samples [default: 20000, on a simulated device 1024]
    #[arg(long, value_name = "N", value_parser = number::at_least_1)]
    pub(super) samples: Option<usize>,

    /// Element type of synthetic samples [default: u8]
    #[arg(long, value_name = "TYPE", value_parser = dtype::any)]
    pub(super) dtype: Option<Dtype>,

    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    pub(super) html: Option<PathBuf>,
}

impl Args {
    /// When to stop.
    pub(super) fn end(&self, simulated: bool) -> FeedTarget {
        let (epochs, time_ns) = match (self.epochs, self.time) {
            (None, None) if simulated => (Some(1), None),
            (None, None) => (None, Some(TIME_NS)),
            given => given,
        };
        FeedTarget { epochs, time_ns }
    }
}

/// Means and standard deviations of a field.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MeanStd {
    pub(super) field: Option<String>,
    pub(super) mean: Vec<f32>,
    pub(super) std: Vec<f32>,
}

fn refuse_rank(_: &str) -> Result<String, String> {
    Err("use --shard RANK/WORLD, such as --shard 0/8 for the first of eight".to_owned())
}

fn parse_normalized_type(text: &str) -> Result<Dtype, String> {
    dtype::one_of(text, &[Dtype::F32, Dtype::Bf16])
}

/// Such as `3x224x224`.
fn parse_shape(text: &str) -> Result<List<usize>, String> {
    let dimension = |text: &str| text.parse::<usize>().ok().filter(|dim| *dim > 0);
    let shape: Option<_> = text.split('x').map(dimension).collect();
    shape.ok_or_else(|| "not a shape; use dimensions separated by x, such as 3x224x224".into())
}

/// Such as `cls=u8:..8`, `id=i64:`, `img=u8:3x224x224`, `jpg=u8:..500000`.
fn parse_tar_field(text: &str) -> Result<Field, String> {
    let form = "use EXTENSION=TYPE:SHAPE, such as img=u8:3x224x224, jpg=u8:..500000, cls=u8:..8 for text or \
                id=i64: for an integer";
    let (extension, rest) = text.split_once('=').ok_or(form)?;
    let (name, extent) = rest.split_once(':').ok_or(form)?;
    if extension.is_empty() || extension.starts_with('.') {
        return Err(format!("the extension must not start with a dot; {form}"));
    }
    let dtype = dtype::any(name)?;
    Ok(match (extent, extent.strip_prefix("..")) {
        ("", _) => Field::fixed(extension, dtype, []),
        (_, Some(most)) => Field::variable(extension, dtype, number::at_least_1(most)?),
        (_, None) => Field::fixed(extension, dtype, parse_shape(extent)?),
    })
}

/// Such as `0.485,0.456,0.406/0.229,0.224,0.225`, optionally with `image=` in front.
fn parse_mean_std(text: &str) -> Result<MeanStd, String> {
    let form = "use means, a slash and standard deviations, such as \
                0.485,0.456,0.406/0.229,0.224,0.225";
    let (field, numbers) = match text.rsplit_once('=') {
        Some((field, numbers)) => (Some(field.to_owned()), numbers),
        None => (None, text),
    };
    let number = |text: &str| text.trim().parse::<f32>().ok();
    let list = |text: &str| text.split(',').map(number).collect::<Option<Vec<_>>>();
    let (mean, std) = numbers.split_once('/').ok_or(form)?;
    let (mean, std) = (list(mean).ok_or(form)?, list(std).ok_or(form)?);
    // A negative deviation would invert the images.
    if let Some(wrong) = std.iter().find(|std| std.is_nan() || **std <= 0.0) {
        return Err(format!(
            "a standard deviation must be more than 0, not {wrong}; {form}"
        ));
    }
    // Checks the numbers; the layout of the channels is not known yet.
    Normalize::mean_std(&mean, &std, 1).map_err(|error| format!("{error}; {form}"))?;
    // Factors for bytes from 0 to 255 would map everything to about the same number.
    if let Some(large) = mean.iter().chain(&std).find(|number| **number > 1.0) {
        return Err(format!(
            "means and standard deviations must be for values from 0 to 1, because each byte is divided by \
             255 first; divide {large} and the others by 255"
        ));
    }
    Ok(MeanStd { field, mean, std })
}

fn parse_time(text: &str) -> Result<u64, String> {
    match duration(text)? {
        0 => Err("must be more than 0, such as 5s".to_owned()),
        ns => Ok(ns),
    }
}

fn parse_kernel(text: &str) -> Result<u64, String> {
    match duration(text)? {
        0 => Err("must be more than 0, such as 20ms; drop --kernel to run none".to_owned()),
        ns if ns > KERNEL_NS_MAX => {
            Err("must be at most 400ms, so that Ctrl-C does not have to wait".to_owned())
        }
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_archives() {
        let image = Field::fixed("img", Dtype::U8, [3, 224, 224]);
        for (text, expected) in [
            ("img=u8:3x224x224", image),
            ("cls=i64:", Field::fixed("cls", Dtype::I64, [])),
            ("seg.png=U8:..10", Field::variable("seg.png", Dtype::U8, 10)),
        ] {
            assert_eq!(parse_tar_field(text), Ok(expected));
        }
        for (text, reason) in [
            ("", "EXTENSION=TYPE:SHAPE"),
            ("jpg", "EXTENSION=TYPE:SHAPE"),
            ("jpg=u8", "EXTENSION=TYPE:SHAPE"),
            ("=u8:3", "must not start with a dot"),
            (".jpg=u8:3", "must not start with a dot"),
            ("jpg=u7:3", "bf16"),
            ("jpg=u8:3x", "not a shape"),
            ("jpg=u8:0", "not a shape"),
            ("jpg=u8:..0", "at least 1"),
            ("jpg=u8:..", "a whole number"),
            ("jpg=u8:-3", "not a shape"),
        ] {
            let error = parse_tar_field(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn means_and_deviations() {
        let found = parse_mean_std("0.5, 0.25/1,0.5").expect("two channels");
        assert_eq!((found.mean, found.std), (vec![0.5, 0.25], vec![1.0, 0.5]));
        let found = parse_mean_std("a=b=0.5/1").expect("one channel");
        assert_eq!(found.field.as_deref(), Some("a=b"));
        for (text, reason) in [
            ("", "a slash"),
            ("0.5", "a slash"),
            ("0.5/", "a slash"),
            ("0.5/x", "a slash"),
            ("0.5,0.5/1", "as many as mean"),
            ("0.5/0", "not 0;"),
            ("0.5,0.5/1,-0.2", "not -0.2;"),
            ("0.5/nan", "not NaN;"),
            ("123.675/58.395", "divide 123.675 and"),
            ("0.5,0.5/0.2,58.395", "divide 58.395 and"),
            ("0.5/inf", "must be finite"),
            ("nan/1", "must be finite"),
            ("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0/1", "1 to 16"),
        ] {
            let error = parse_mean_std(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn times_and_numbers() {
        assert_eq!(parse_kernel("20ms"), Ok(20_000_000));
        assert!(parse_kernel("0").is_err());
        assert!(parse_kernel("1s").is_err_and(|error| error.contains("400ms")));
        assert!(parse_time("0s").is_err() && parse_time("5").is_err());
        assert_eq!(parse_normalized_type("torch.bfloat16"), Ok(Dtype::Bf16));
        assert!(parse_normalized_type("f16").is_err_and(|error| error.contains("f32, bf16")));
    }
}
