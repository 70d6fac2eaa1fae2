//! The words of the command.

use std::path::PathBuf;

use pinlane::load::Dtype;

use super::course::End;
use super::words::{self, TarField, To};
use crate::{dtype, file, number};

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
    pub(super) source: Vec<String>,

    /// Samples of a batch
    #[arg(
        long,
        default_value_t = 256,
        value_name = "N",
        value_parser = number::at_least_1,
        allow_negative_numbers = true
    )]
    pub(super) batch: usize,

    /// Take samples as they are numbered, instead of in another order in each epoch
    #[arg(long, overrides_with = "shuffle")]
    pub(super) no_shuffle: bool,

    /// Take samples in another order in each epoch: this is the default
    #[arg(long)]
    pub(super) shuffle: bool,

    /// Decides the order: the same number, the same order
    #[arg(
        long,
        default_value_t = 0,
        value_name = "N",
        value_parser = words::seed,
        allow_negative_numbers = true
    )]
    pub(super) seed: u64,

    /// Threads that read samples; with 0 the thread that asks for batches does
    ///
    /// [default: three of four CPUs; 0 on a simulated device]
    #[arg(long, value_name = "N", value_parser = words::workers, allow_negative_numbers = true)]
    pub(super) workers: Option<usize>,

    /// Batches that are made ready ahead
    #[arg(
        long,
        default_value_t = 3,
        value_name = "N",
        value_parser = words::prefetch,
        allow_negative_numbers = true
    )]
    pub(super) prefetch: usize,

    /// Run so many epochs [default: as many as --time allows; one on a simulated device]
    #[arg(long, value_name = "N", value_parser = words::epochs, allow_negative_numbers = true)]
    pub(super) epochs: Option<u64>,

    /// Stop after this time, such as 5s [default: 5s, unless --epochs is given]
    ///
    /// On a simulated device it is time of the simulated clock.
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(super) time: Option<u64>,

    /// Let the GPU work for this long on each batch, such as 20ms, and say how long it stands idle
    #[arg(long, value_name = "TIME", value_parser = words::kernel)]
    pub(super) kernel: Option<u64>,

    /// Leave out samples that cannot be read, and count them
    #[arg(long)]
    pub(super) skip_bad: bool,

    /// Make numbers of a field of u8 on the device: means, a slash, standard deviations
    ///
    /// Each byte x becomes (x / 255 - mean) / std, so that means and deviations are those of numbers
    /// from 0 to 1. One of each for every channel, such as 0.485,0.456,0.406/0.229,0.224,0.225.
    /// Channels are the first dimension of a sample or else the last. FIELD= in front names the field
    /// where there are several of u8.
    #[arg(long, value_name = "[FIELD=]MEAN,…/STD,…", value_parser = words::factors)]
    pub(super) normalize: Option<words::Factors>,

    /// With --normalize: what comes of it, f32 or bf16
    #[arg(
        long,
        value_name = "TYPE",
        requires = "normalize",
        default_value = "f32",
        value_parser = words::to
    )]
    pub(super) to: To,

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
    pub(super) rank: Option<usize>,

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
    pub(super) world: Option<usize>,

    /// Files in tar archives that are a field of the samples: extension, type, shape; may be repeated
    ///
    /// Bytes are taken as they are in the archive, nothing is decoded. cls=u8:..8 is for text of up to 8
    /// bytes, such as a label 281; id=i64: for a number of 8 bytes, little-endian; img=u8:3x224x224 for
    /// pixels; jpg=u8:..500000 for images as they are compressed, up to so many bytes.
    #[arg(long, value_name = "EXT=TYPE:SHAPE", value_parser = words::tar_field)]
    pub(super) field: Vec<TarField>,

    /// Shape of a synthetic sample [default: 3x224x224]
    #[arg(long, value_name = "SHAPE", value_parser = words::shape)]
    pub(super) shape: Option<words::Shape>,

    /// Synthetic samples [default: 20000, on a simulated device 1024]
    #[arg(long, value_name = "N", value_parser = number::at_least_1, allow_negative_numbers = true)]
    pub(super) samples: Option<usize>,

    /// Type of the elements of a synthetic sample [default: u8]
    #[arg(long, value_name = "TYPE", value_parser = dtype::any)]
    pub(super) dtype: Option<Dtype>,

    /// Also write a page to open in a browser; it needs no network
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    pub(super) html: Option<PathBuf>,
}

impl Args {
    /// When it is enough.
    pub(super) fn end(&self, simulated: bool) -> End {
        match (self.epochs, self.time) {
            (None, None) if simulated => End::epochs(1),
            (None, None) => End::time(TIME_NS),
            (epochs, time_ns) => End { epochs, time_ns },
        }
    }
}
