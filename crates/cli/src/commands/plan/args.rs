//! The words of `pinlane plan`.

use std::path::PathBuf;

use clap::ValueEnum;
use pinlane_model::pipeline::{Memory, Order};

use crate::profile::{self, Named};
use crate::{duration, rate, size};

/// More streams are no use to anybody, and drivers slow down.
const STREAMS_AT_MOST: i64 = 128;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("kernel_time").args(["kernel", "kernel_rate"]).required(true)))]
pub(crate) struct Args {
    /// Bytes that the kernel reads, such as 1GiB
    #[arg(long = "in", value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(crate) bytes_in: usize,

    /// Bytes that the kernel writes; 0 where nothing comes back
    #[arg(long = "out", value_name = "BYTES", value_parser = size::parse_or_none, allow_hyphen_values = true)]
    pub(crate) bytes_out: usize,

    /// What the kernel takes for all of the input, such as 4ms, 850us or 1.5s
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration::parse,
        allow_hyphen_values = true
    )]
    pub(crate) kernel: Option<u64>,

    /// How fast the kernel reads its input, such as 250GB/s or 1.2TB/s
    #[arg(
        long,
        value_name = "RATE",
        value_parser = rate::parse,
        allow_hyphen_values = true
    )]
    pub(crate) kernel_rate: Option<u64>,

    /// Where the input is
    #[arg(long, value_enum, default_value_t = Place::Pinned, value_name = "MEMORY")]
    pub(crate) input: Place,

    /// Where the output goes
    #[arg(long, value_enum, default_value_t = Place::Pinned, value_name = "MEMORY")]
    pub(crate) output: Place,

    /// Take this chunk, and show the best plan beside it
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(crate) chunk: Option<usize>,

    /// Take so many streams, from 1 to 128, and show the best plan beside it
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=STREAMS_AT_MOST),
        allow_hyphen_values = true
    )]
    pub(crate) streams: Option<u32>,

    /// Take this order, and show the best plan beside it
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) order: Option<OrderWord>,

    /// Device memory that the buffers of chunks may take [default: all that the profile has]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(crate) device_memory: Option<usize>,

    /// Pinned memory that the rings of the express lane may take [default: any]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(crate) pinned_memory: Option<usize>,

    /// Plan for this profile, built in or in a file, and not for --device
    #[arg(long, value_name = "NAME|FILE", value_parser = profile::named)]
    pub(crate) profile: Option<Named>,

    /// Write the timeline as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the timeline as a page to zoom into
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the timeline as a trace for Perfetto and chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

/// Where bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Place {
    /// Page-locked memory
    Pinned,
    /// Ordinary memory, copied by the driver
    Pageable,
    /// Ordinary memory, copied by the express lane
    Express,
    /// Device memory: nothing is copied
    Device,
}

impl From<Place> for Memory {
    fn from(place: Place) -> Self {
        match place {
            Place::Pinned => Self::Pinned,
            Place::Pageable => Self::Pageable,
            Place::Express => Self::Express,
            Place::Device => Self::Device,
        }
    }
}

/// An order of submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OrderWord {
    /// Chunk by chunk, on the streams in turn
    DepthFirst,
    /// Step by step, one chunk a stream
    BreadthFirst,
    /// Three streams: copies in, kernels, copies out
    StageStreams,
}

impl From<OrderWord> for Order {
    fn from(order: OrderWord) -> Self {
        match order {
            OrderWord::DepthFirst => Self::DepthFirst,
            OrderWord::BreadthFirst => Self::BreadthFirst,
            OrderWord::StageStreams => Self::StageStreams,
        }
    }
}
