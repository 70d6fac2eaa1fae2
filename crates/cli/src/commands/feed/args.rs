//! Arguments of `pinlane feed`.

use std::path::PathBuf;

use pinlane::load::Dtype;

use super::parse::{self, MeanStd, Shape, TarField};
use super::run::End;
use crate::output_file;
use crate::parse::{dtype, number};

/// Default duration on a real device.
const TIME_NS: u64 = 5_000_000_000;

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
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = parse::seed)]
    pub(super) seed: u64,

    /// Threads that read samples; 0 reads on the consumer's thread
    ///
    /// [default: three quarters of the CPUs; 0 on a simulated device]
    #[arg(long, value_name = "N", value_parser = parse::workers)]
    pub(super) workers: Option<usize>,

    /// Batches to prepare ahead
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = parse::prefetch)]
    pub(super) prefetch: usize,

    /// Stop after this many epochs [default: as many as fit into --time; 1 on a simulated device]
    #[arg(long, value_name = "N", value_parser = parse::epochs)]
    pub(super) epochs: Option<u64>,

    /// Stop after this time, such as 5s [default: 5s, unless --epochs is given]
    ///
    /// On a simulated device this is simulated time.
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub(super) time: Option<u64>,

    /// Run a kernel of this length on each batch, such as 20ms, and show how long the GPU is idle
    #[arg(long, value_name = "TIME", value_parser = parse::kernel)]
    pub(super) kernel: Option<u64>,

    /// Skip and count samples that cannot be read
    #[arg(long)]
    pub(super) skip_bad: bool,

    /// Normalize a u8 field on the device: means, a slash, standard deviations
    ///
    /// Each byte x becomes (x / 255 - mean) / std, so means and deviations refer to values from 0 to 1.
    /// Give one of each per channel, such as 0.485,0.456,0.406/0.229,0.224,0.225. Channels are the first
    /// dimension of a sample, or else the last. If there are several u8 fields, put FIELD= in front.
    #[arg(long, value_name = "[FIELD=]MEAN,…/STD,…", value_parser = parse::mean_std)]
    pub(super) normalize: Option<MeanStd>,

    /// Type of the normalized field: f32 or bf16
    #[arg(
        long,
        value_name = "TYPE",
        requires = "normalize",
        default_value = "f32",
        value_parser = parse::normalized_type
    )]
    pub(super) to: Dtype,

    /// Rank of this process among those that share the dataset, from 0; needs --world
    ///
    /// [default: from torchrun, Open MPI, PMI or SLURM; otherwise this process reads all samples]
    #[arg(long, value_name = "N", requires = "world", value_parser = number::at_least_0)]
    pub(super) rank: Option<usize>,

    /// Number of processes that share the dataset; needs --rank
    ///
    /// Every process reads the same number of samples. If they do not divide evenly, some are read twice.
    #[arg(long, value_name = "N", requires = "rank", value_parser = number::at_least_1)]
    pub(super) world: Option<usize>,

    /// Field of tar archives: extension, type and shape of its files; may be repeated
    ///
    /// Bytes are used as they are in the archive; nothing is decoded. cls=u8:..8 is text of up to 8 bytes,
    /// such as the label 281; id=i64: an 8-byte little-endian integer; img=u8:3x224x224 raw pixels;
    /// jpg=u8:..500000 compressed images of up to 500000 bytes.
    #[arg(long, value_name = "EXT=TYPE:SHAPE", value_parser = parse::tar_field)]
    pub(super) field: Vec<TarField>,

    /// Shape of a synthetic sample [default: 3x224x224]
    #[arg(long, value_name = "SHAPE", value_parser = parse::shape)]
    pub(super) shape: Option<Shape>,

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
    pub(super) fn end(&self, simulated: bool) -> End {
        let (epochs, time_ns) = match (self.epochs, self.time) {
            (None, None) if simulated => (Some(1), None),
            (None, None) => (None, Some(TIME_NS)),
            given => given,
        };
        End { epochs, time_ns }
    }
}
