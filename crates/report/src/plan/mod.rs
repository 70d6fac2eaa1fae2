//! `plan`: the best way to run a job, as predicted by the model.

mod advice;
mod text;

pub use advice::{PlanAdvice, PlanBottleneck};

use pinlane_model::pipeline::Memory;
use serde::Serialize;

use crate::Origin;
use crate::format::{counted, duration, rounded_size, short_size};
use crate::timeline::Chart;

/// Another way to run the job.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanAlternative {
    /// Name.
    pub name: String,
    /// Shape; `None` if nothing overlaps.
    pub shape: Option<PlanShape>,
    /// Predicted time.
    pub predicted_ns: u64,
    /// Predicted time as a multiple of the best plan's.
    pub times_best: f64,
}

impl PlanAlternative {
    /// An alternative to a plan that takes `best_ns`.
    #[must_use]
    pub fn new(name: &str, shape: Option<PlanShape>, predicted_ns: u64, best_ns: u64) -> Self {
        Self {
            name: name.to_owned(),
            shape,
            predicted_ns,
            times_best: ratio(predicted_ns, best_ns),
        }
    }
}

/// A prediction; nothing is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// The profile.
    #[serde(flatten)]
    pub origin: Origin,
    /// File of the profile; `None` for a built-in one.
    pub profile_file: Option<String>,
    /// The job.
    pub job: PlanJob,
    /// Time without overlap, with plain driver copies.
    pub serial_ns: u64,
    /// The requested shape, if any.
    pub given: Option<PlanRun>,
    /// The best shape.
    pub best: PlanRun,
    /// What limits the best shape.
    pub bottleneck: PlanBottleneck,
    /// What would help.
    pub advice: PlanAdvice,
    /// The advice as a sentence.
    pub advice_text: String,
    /// Other ways to run the job.
    pub alternatives: Vec<PlanAlternative>,
    /// Predicted timeline.
    pub timeline: Chart,
    /// Files that the timeline was written to.
    pub written: Vec<String>,
}

/// The job: input bytes, a kernel, output bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PlanJob {
    /// Input bytes.
    pub bytes_in: u64,
    /// Output bytes.
    pub bytes_out: u64,
    /// Total kernel time, without launches.
    pub kernel_ns: u64,
    /// Memory of the input.
    pub input: Memory,
    /// Memory of the output.
    pub output: Memory,
}

impl PlanJob {
    /// Short description, for headings.
    #[must_use]
    pub fn title(&self) -> String {
        let out = match self.bytes_out {
            0 => "no output".to_owned(),
            bytes => format!("{} out", short_size(bytes)),
        };
        let kernel = duration(self.kernel_ns);
        format!(
            "{} in, {kernel} of kernel, {out}",
            short_size(self.bytes_in)
        )
    }

    /// Memory of input and output.
    fn memory(&self) -> String {
        let (from, to) = (memory_name(self.input), memory_name(self.output));
        match self.bytes_out {
            0 => from.to_owned(),
            _ if self.input == self.output => format!("{from}, in and out"),
            _ => format!("{from} in, {to} out"),
        }
    }
}

fn memory_name(memory: Memory) -> &'static str {
    match memory {
        Memory::Pinned => "pinned memory",
        Memory::Pageable => "pageable memory",
        Memory::Express => "pageable memory by the express lane",
        Memory::Device => "device memory",
    }
}

/// How a job is divided and submitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanShape {
    /// Number of chunks.
    pub chunks: u64,
    /// Input bytes per chunk; the last one may have fewer.
    pub chunk_bytes: u64,
    /// Streams.
    pub streams: u32,
    /// Order of submission.
    pub order: String,
    /// Chunks with buffers at the same time.
    pub ring_slots: u32,
    /// Threads of the express lane, if used.
    pub lanes: Option<u32>,
    /// Device memory for the buffers.
    pub device_bytes: u64,
    /// Pinned memory for the rings of the express lane.
    pub pinned_bytes: u64,
}

impl PlanShape {
    /// The shape in one line.
    #[must_use]
    pub fn title(&self) -> String {
        format!(
            "{} of {}, {}, {}",
            counted(self.chunks, "chunk"),
            rounded_size(self.chunk_bytes),
            counted(self.streams.into(), "stream"),
            self.order
        )
    }

    /// Memory in addition to input and output.
    fn memory(&self) -> String {
        let ring = counted(self.ring_slots.into(), "slot");
        let device = short_size(self.device_bytes);
        let mut text = format!("ring of {ring}: {device} of device memory");
        if self.pinned_bytes > 0 {
            text.push_str(&format!(", {} pinned", short_size(self.pinned_bytes)));
        }
        if let Some(lanes) = self.lanes {
            text.push_str(&format!("; {}", counted(lanes.into(), "lane")));
        }
        text
    }
}

/// A shape and its predicted time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanRun {
    /// How the job is divided and submitted.
    #[serde(flatten)]
    pub shape: PlanShape,
    /// Predicted time.
    pub predicted_ns: u64,
    /// Input, 1e9 bytes a second.
    pub in_gb_per_s: f64,
    /// Output, 1e9 bytes a second.
    pub out_gb_per_s: f64,
    /// Speed-up over the time without overlap.
    pub speedup: f64,
}

impl PlanRun {
    /// A run of a job that takes `serial_ns` without overlap.
    #[must_use]
    pub fn new(shape: PlanShape, predicted_ns: u64, job: &PlanJob, serial_ns: u64) -> Self {
        Self {
            shape,
            predicted_ns,
            // Bytes per nanosecond are GB/s.
            in_gb_per_s: ratio(job.bytes_in, predicted_ns),
            out_gb_per_s: ratio(job.bytes_out, predicted_ns),
            speedup: ratio(serial_ns, predicted_ns),
        }
    }
}

/// A quotient that is finite even for a divisor of 0.
fn ratio(first: u64, second: u64) -> f64 {
    first as f64 / second.max(1) as f64
}
