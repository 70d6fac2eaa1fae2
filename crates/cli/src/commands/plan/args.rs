//! Arguments of `pinlane plan`, the job they describe, and errors that name them.

use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, PlanError};
use pinlane_model::planner::Limits;
use pinlane_model::{Direction, HostKind, Profile};

use crate::input_error::UsageError;
use crate::output_file::ChartFiles;
use crate::parse::{DURATION_NS_MAX, duration, number, one_of, rate, size};
use crate::profile::{self, ProfileFile};

/// More streams never help, and drivers slow down.
const STREAMS_MAX: u32 = 128;

const GIB: u128 = 1 << 30;
const NS_PER_S: u128 = 1_000_000_000;

const MEMORY: [Memory; 4] = [
    Memory::Pinned,
    Memory::Pageable,
    Memory::Express,
    Memory::Device,
];

fn memory_text(memory: Memory) -> &'static str {
    match memory {
        Memory::Pinned => "pinned: Page-locked memory",
        Memory::Pageable => "pageable: Pageable memory, copied by the driver",
        Memory::Express => "express: Pageable memory, copied by the express lane",
        Memory::Device => "device: Device memory; nothing is copied",
    }
}

fn order_text(order: PipelineOrder) -> &'static str {
    match order {
        PipelineOrder::DepthFirst => "depth-first: Chunk by chunk, alternating between the streams",
        PipelineOrder::BreadthFirst => "breadth-first: Stage by stage, with one chunk per stream",
        PipelineOrder::StageStreams => "stage-streams: Three streams: uploads, kernels, downloads",
    }
}

/// The job without --in, --out and a kernel.
const DEFAULT_BYTES: usize = 1 << 30;
const DEFAULT_KERNEL_NS: u64 = 4_000_000;
const DEFAULT_JOB: &str = "--in 1GiB --out 1GiB --kernel 4ms";

#[derive(clap::Args)]
#[command(group(
    clap::ArgGroup::new("kernel_time")
        .args(["kernel", "kernel_rate"])
        .requires_all(["bytes_in", "bytes_out"])
))]
pub(crate) struct Args {
    /// Bytes that the kernel reads, such as 1GiB
    ///
    /// Without --in, --out and a kernel it plans --in 1GiB --out 1GiB --kernel 4ms.
    #[arg(
        long = "in",
        value_name = "BYTES",
        value_parser = size::parse,
        allow_hyphen_values = true,
        requires_all = ["bytes_out", "kernel_time"]
    )]
    bytes_in: Option<usize>,

    /// Bytes that the kernel writes; 0 if nothing is copied back
    #[arg(
        long = "out",
        value_name = "BYTES",
        value_parser = size::parse_or_zero,
        allow_hyphen_values = true,
        requires_all = ["bytes_in", "kernel_time"]
    )]
    bytes_out: Option<usize>,

    /// Time of the kernel for the whole input, such as 4ms, 850us or 1.5s
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    kernel: Option<u64>,

    /// Rate at which the kernel reads its input, such as 250GB/s or 1.2TB/s
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    kernel_rate: Option<u64>,

    /// Least time of the kernel on a chunk, such as 200us, however small the chunk
    ///
    /// A chunk that does not fill the GPU takes longer than its share. `overlap` measures this for its kernel.
    #[arg(
        long,
        default_value = "0s",
        value_name = "TIME",
        value_parser = duration,
        allow_hyphen_values = true,
        requires = "kernel_time"
    )]
    kernel_least: u64,

    /// Memory of the input
    #[arg(long, default_value = "pinned", value_name = "MEMORY", value_parser = one_of(&MEMORY, memory_text))]
    input: Memory,

    /// Memory of the output
    #[arg(long, default_value = "pinned", value_name = "MEMORY", value_parser = one_of(&MEMORY, memory_text))]
    output: Memory,

    /// Use this chunk size, and show the best plan for comparison
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pub(super) chunk: Option<usize>,

    /// Use this number of streams, from 1 to 128, and show the best plan for comparison
    #[arg(long, value_name = "N", value_parser = number::up_to(STREAMS_MAX), allow_hyphen_values = true)]
    pub(super) streams: Option<u32>,

    /// Use this order, and show the best plan for comparison
    #[arg(long, value_name = "ORDER", value_parser = one_of(&PipelineOrder::ALL, order_text))]
    pub(super) order: Option<PipelineOrder>,

    /// Limit of device memory for chunk buffers [default: all memory of the profile]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    device_memory: Option<usize>,

    /// Limit of pinned memory for the rings of the express lane [default: none]
    #[arg(long, value_name = "BYTES", value_parser = size::parse, allow_hyphen_values = true)]
    pinned_memory: Option<usize>,

    /// Plan for this profile, a built-in name or a file, instead of --device
    #[arg(long, value_name = "NAME|FILE", value_parser = profile::named)]
    pub(super) profile: Option<ProfileFile>,

    #[command(flatten)]
    pub(super) files: ChartFiles,
}

impl Args {
    /// The default job's flags, if no other job is given.
    pub(super) fn default_job(&self) -> Option<&'static str> {
        self.bytes_in.is_none().then_some(DEFAULT_JOB)
    }

    pub(super) fn job(&self) -> Result<Job, UsageError> {
        let [bytes_in, bytes_out] =
            [self.bytes_in, self.bytes_out].map(|bytes| bytes.unwrap_or(DEFAULT_BYTES) as u64);
        let default_ns = self.default_job().map(|_| DEFAULT_KERNEL_NS);
        let flag = self.kernel_flag();
        let ns_per_gib = match (self.kernel.or(default_ns), self.kernel_rate) {
            // Rounded up, so that the whole input takes no less than given.
            (Some(ns), _) => (u128::from(ns) * GIB).div_ceil(u128::from(bytes_in.max(1))),
            (None, rate) => rate.map_or(0, |rate| GIB * NS_PER_S / u128::from(rate.max(1))),
        };
        let ns_per_gib = u64::try_from(ns_per_gib).map_err(|_| {
            UsageError(format!(
                "{flag}: too slow for this few bytes; use a faster kernel or a larger --in"
            ))
        })?;
        let kernel = KernelTime {
            least_ns: self.kernel_least,
            ns_per_gib,
            ..KernelTime::default()
        };
        if !kernel.ns(bytes_in).is_ok_and(|ns| ns <= DURATION_NS_MAX) {
            return Err(UsageError(format!(
                "{flag}: the kernel takes more than 1000 hours in total; use a faster one or a smaller --in"
            )));
        }
        Ok(Job {
            bytes_in,
            bytes_out,
            kernel,
            input: self.input,
            output: self.output,
            host_ns_per_chunk: 0,
        })
    }

    fn kernel_flag(&self) -> &'static str {
        match self.kernel {
            Some(_) => "--kernel",
            None => "--kernel-rate",
        }
    }

    /// The limits of a plan.
    pub(super) fn limits(&self, profile: &Profile) -> Limits {
        let or = |given: Option<usize>, otherwise| given.map_or(otherwise, |bytes| bytes as u64);
        Limits {
            device_bytes: or(self.device_memory, profile.device.memory_bytes),
            pinned_bytes: or(self.pinned_memory, u64::MAX),
            ..Limits::default()
        }
    }

    /// The model's error, with the flag that caused it.
    pub(super) fn refusal(&self, error: PlanError) -> UsageError {
        let PlanError::Invalid { field, reason } = &error else {
            let flags = "--in, --out, --profile";
            return UsageError(format!("{flags}: cannot compute a schedule: {error}"));
        };
        let flag = match *field {
            "bytes_in" => "--in",
            "bytes_out" => "--out",
            "kernel" => self.kernel_flag(),
            "input" => "--input",
            "output" => "--output",
            "chunk_bytes" => "--chunk",
            "streams" | "streams_at_most" => "--streams",
            "device_bytes" if self.device_memory.is_none() => {
                "--in, --out: device memory of the profile"
            }
            "device_bytes" => "--device-memory",
            "pinned_bytes" => "--pinned-memory",
            other => other,
        };
        let remedy = match *field {
            "input" | "output" => "; use pinned or pageable, or another --profile",
            _ => "",
        };
        UsageError(format!("{flag}: {reason}{remedy}"))
    }
}

/// Fails if the time is too long to represent. `flags` are the cause.
pub(super) fn check_time(ns: u64, flags: &str) -> Result<(), UsageError> {
    let too_long = || UsageError(format!("{flags}: the job takes too long to represent"));
    (ns < u64::MAX).then_some(()).ok_or_else(too_long)
}

/// Fails if the job's copies take no time on the profile: there is nothing to overlap.
pub(super) fn check_profile(job: &Job, profile: &Profile) -> Result<(), UsageError> {
    let ends = [
        (Direction::HostToDevice, job.input, job.bytes_in),
        (Direction::DeviceToHost, job.output, job.bytes_out),
    ];
    let copies = ends.into_iter().filter_map(|(direction, memory, bytes)| {
        let kind = match memory {
            Memory::Device => return None,
            Memory::Pageable => HostKind::Pageable,
            Memory::Pinned | Memory::Express => HostKind::Pinned,
        };
        (bytes > 0).then(|| profile.copy_ns(direction, kind, bytes))
    });
    // The slowest copy, if there is one.
    if copies.max() == Some(0) {
        return Err(UsageError(format!(
            "--profile {}: copies take no time on it, so there is nothing to plan",
            profile.name
        )));
    }
    Ok(())
}
