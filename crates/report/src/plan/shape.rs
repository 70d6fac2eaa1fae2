//! How a job is cut and issued, and what that takes.

use serde::Serialize;

use super::PlanJob;
use crate::format::amount;
use crate::timeline::layout::words::roughly;

/// How a job is cut and issued.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanShape {
    /// Number of chunks.
    pub chunks: u64,
    /// Input bytes of a chunk; the last may have fewer.
    pub chunk_bytes: u64,
    /// Streams.
    pub streams: u32,
    /// Order of submission.
    pub order: String,
    /// Chunks that have buffers at the same time.
    pub ring_slots: u32,
    /// Threads of the express lane, where it is used.
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
        let chunks = match self.chunks {
            1 => "1 chunk".to_owned(),
            chunks => format!("{chunks} chunks"),
        };
        let streams = match self.streams {
            1 => "1 stream".to_owned(),
            streams => format!("{streams} streams"),
        };
        let chunk = roughly(self.chunk_bytes);
        format!("{chunks} of {chunk}, {streams}, {}", self.order)
    }

    /// What it needs beside input and output.
    pub(super) fn memory(&self) -> String {
        let ring = match self.ring_slots {
            1 => "1 slot".to_owned(),
            slots => format!("{slots} slots"),
        };
        let mut text = format!(
            "ring of {ring}: {} of device memory",
            amount(self.device_bytes)
        );
        if self.pinned_bytes > 0 {
            text.push_str(&format!(", {} pinned", amount(self.pinned_bytes)));
        }
        match self.lanes {
            Some(1) => text.push_str("; 1 lane"),
            Some(lanes) => text.push_str(&format!("; {lanes} lanes")),
            None => {}
        }
        text
    }
}

/// A shape and what the job takes in it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanRun {
    /// How the job is cut and issued.
    #[serde(flatten)]
    pub shape: PlanShape,
    /// What it takes.
    pub predicted_ns: u64,
    /// Input, 1e9 bytes a second.
    pub in_gb_per_s: f64,
    /// Output, 1e9 bytes a second.
    pub out_gb_per_s: f64,
    /// How many times faster than one step after the other.
    pub speedup: f64,
}

impl PlanRun {
    pub(super) fn new(shape: PlanShape, ns: u64, job: &PlanJob, serial_ns: u64) -> Self {
        Self {
            shape,
            predicted_ns: ns,
            // Bytes a nanosecond are GB/s.
            in_gb_per_s: ratio(job.bytes_in, ns),
            out_gb_per_s: ratio(job.bytes_out, ns),
            speedup: ratio(serial_ns, ns),
        }
    }
}

/// A quotient that is a number whatever is divided.
pub(super) fn ratio(first: u64, second: u64) -> f64 {
    first as f64 / second.max(1) as f64
}
