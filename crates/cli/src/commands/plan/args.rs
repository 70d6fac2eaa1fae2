//! Arguments of `pinlane plan`.

use pinlane_model::pipeline::{Memory, PipelineOrder};

use crate::chart_files::ChartFiles;
use crate::parse::{duration, names, number, rate, size};
use crate::profile::{self, ProfileFile};

/// More streams never help, and drivers slow down.
const STREAMS_MAX: u32 = 128;

const MEMORY: [(&str, Memory, &str); 4] = [
    ("pinned", Memory::Pinned, "Page-locked memory"),
    (
        "pageable",
        Memory::Pageable,
        "Pageable memory, copied by the driver",
    ),
    (
        "express",
        Memory::Express,
        "Pageable memory, copied by the express lane",
    ),
    ("device", Memory::Device, "Device memory; nothing is copied"),
];

const ORDERS: [(&str, PipelineOrder, &str); 3] = [
    (
        "depth-first",
        PipelineOrder::DepthFirst,
        "Chunk by chunk, alternating between the streams",
    ),
    (
        "breadth-first",
        PipelineOrder::BreadthFirst,
        "Stage by stage, with one chunk per stream",
    ),
    (
        "stage-streams",
        PipelineOrder::StageStreams,
        "Three streams: uploads, kernels, downloads",
    ),
];

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("kernel_time").args(["kernel", "kernel_rate"]).required(true)))]
pub(crate) struct Args {
    /// Bytes that the kernel reads, such as 1GiB
    #[arg(long = "in", value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(super) bytes_in: usize,

    /// Bytes that the kernel writes; 0 if nothing is copied back
    #[arg(long = "out", value_name = "BYTES", value_parser = size::parse_or_zero, allow_hyphen_values = true)]
    pub(super) bytes_out: usize,

    /// Time of the kernel for the whole input, such as 4ms, 850us or 1.5s
    #[arg(long, value_name = "TIME", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) kernel: Option<u64>,

    /// Rate at which the kernel reads its input, such as 250GB/s or 1.2TB/s
    #[arg(long, value_name = "RATE", value_parser = rate::parse, allow_hyphen_values = true)]
    pub(super) kernel_rate: Option<u64>,

    /// Memory of the input
    #[arg(long, default_value = "pinned", value_name = "MEMORY", value_parser = names::one_of(&MEMORY))]
    pub(super) input: Memory,

    /// Memory of the output
    #[arg(long, default_value = "pinned", value_name = "MEMORY", value_parser = names::one_of(&MEMORY))]
    pub(super) output: Memory,

    /// Use this chunk size, and show the best plan for comparison
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(super) chunk: Option<usize>,

    /// Use this number of streams, from 1 to 128, and show the best plan for comparison
    #[arg(long, value_name = "N", value_parser = number::up_to(STREAMS_MAX), allow_hyphen_values = true)]
    pub(super) streams: Option<u32>,

    /// Use this order, and show the best plan for comparison
    #[arg(long, value_name = "ORDER", value_parser = names::one_of(&ORDERS))]
    pub(super) order: Option<PipelineOrder>,

    /// Limit of device memory for chunk buffers [default: all memory of the profile]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(super) device_memory: Option<usize>,

    /// Limit of pinned memory for the rings of the express lane [default: none]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(super) pinned_memory: Option<usize>,

    /// Plan for this profile, a built-in name or a file, instead of --device
    #[arg(long, value_name = "NAME|FILE", value_parser = profile::named)]
    pub(super) profile: Option<ProfileFile>,

    #[command(flatten)]
    pub(super) files: ChartFiles,
}
