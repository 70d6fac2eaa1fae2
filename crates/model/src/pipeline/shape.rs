//! How to do a job: chunk size, streams, order, ring slots.

use std::fmt;

use super::{Job, Memory, PlanError};
use crate::cost_curve::clamp;

/// The order in which the stages of chunks are submitted, and on which streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PipelineOrder {
    /// Chunk by chunk: copy in, kernel, copy out, on the streams in turn.
    DepthFirst,
    /// Stage by stage, for a group of one chunk per stream: all copies in, all kernels, all copies
    /// out.
    BreadthFirst,
    /// Three streams joined by events: one for copies in, one for kernels, one for copies out.
    StageStreams,
}

impl PipelineOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::DepthFirst, Self::BreadthFirst, Self::StageStreams];

    /// The streams of [`StageStreams`](Self::StageStreams).
    pub const STAGES: u32 = 3;

    /// Its name for people, such as `depth-first`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DepthFirst => "depth-first",
            Self::BreadthFirst => "breadth-first",
            Self::StageStreams => "stage streams",
        }
    }
}

impl fmt::Display for PipelineOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How to do a job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Input bytes of a chunk.
    pub chunk_bytes: u64,
    /// Number of streams; 3 for [`PipelineOrder::StageStreams`].
    pub streams: u32,
    /// Order of submission.
    pub order: PipelineOrder,
    /// Chunks that have device buffers at the same time. At least `streams`, except for
    /// [`PipelineOrder::StageStreams`].
    pub ring_slots: u32,
}

/// Size of the express lane's ring, which all copies share.
const EXPRESS_RING_BYTES: u64 = 96 << 20;

impl Shape {
    /// Device memory for a job's buffers.
    ///
    /// # Errors
    /// [`PlanError`] for an invalid shape.
    pub fn device_bytes(&self, job: &Job) -> Result<u64, PlanError> {
        let chunks = self.chunks(job)?;
        let slots = u64::from(self.ring_slots).min(chunks.count);
        let bytes = chunks.buffer_bytes(job.copies_in(), job.copies_out());
        Ok(bytes.saturating_mul(slots))
    }

    /// Most pinned memory that the express lane uses for a job.
    ///
    /// # Errors
    /// [`PlanError`] for an invalid shape.
    pub fn pinned_bytes(&self, job: &Job) -> Result<u64, PlanError> {
        let [input, output] = [job.input, job.output].map(|memory| memory == Memory::Express);
        let bytes = self.chunks(job)?.buffer_bytes(input, output);
        Ok(bytes.min(EXPRESS_RING_BYTES))
    }

    /// The job's chunks, if the shape is valid.
    pub(crate) fn chunks(&self, job: &Job) -> Result<Chunks, PlanError> {
        if job.bytes_in == 0 {
            return Err(PlanError::invalid("bytes_in", "must be at least 1"));
        }
        let chunks = Chunks::new(job, self.chunk_bytes)?;
        if self.streams == 0 {
            return Err(PlanError::invalid("streams", "must be at least 1"));
        }
        const STAGES: u32 = PipelineOrder::STAGES;
        let least_slots = match self.order {
            PipelineOrder::StageStreams if self.streams != STAGES => {
                let reason = format!("must be {STAGES} for stage streams, is {}", self.streams);
                return Err(PlanError::invalid("streams", reason));
            }
            PipelineOrder::StageStreams => 1,
            _ => self.streams,
        };
        if self.ring_slots < least_slots {
            let reason = format!("must be at least {least_slots}, is {}", self.ring_slots);
            return Err(PlanError::invalid("ring_slots", reason));
        }
        Ok(chunks)
    }
}

/// A job cut into chunks of one size; the last one may be smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    bytes_in: u64,
    bytes_out: u64,
    pub(crate) chunk_bytes: u64,
    pub(crate) count: u64,
}

impl Chunks {
    pub(crate) fn new(job: &Job, chunk_bytes: u64) -> Result<Self, PlanError> {
        if chunk_bytes == 0 {
            return Err(PlanError::invalid("chunk_bytes", "must be at least 1"));
        }
        Ok(Self {
            bytes_in: job.bytes_in,
            bytes_out: job.bytes_out,
            chunk_bytes: chunk_bytes.min(job.bytes_in),
            count: job.bytes_in.div_ceil(chunk_bytes),
        })
    }

    /// Input bytes of a chunk.
    pub(crate) fn bytes_in(&self, chunk: u64) -> u64 {
        self.start(chunk + 1) - self.start(chunk)
    }

    /// Output bytes of a chunk.
    pub(crate) fn bytes_out(&self, chunk: u64) -> u64 {
        self.output_of(self.start(chunk + 1)) - self.output_of(self.start(chunk))
    }

    /// Bytes of the largest chunk, input or output.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.chunk_bytes.max(self.most_bytes_out())
    }

    /// Output of the first `bytes` of input.
    pub(crate) fn output_of(&self, bytes: u64) -> u64 {
        clamp(u128::from(self.bytes_out) * u128::from(bytes) / u128::from(self.bytes_in))
    }

    /// Output bytes of the largest chunk.
    fn most_bytes_out(&self) -> u64 {
        let share = u128::from(self.bytes_out) * u128::from(self.chunk_bytes);
        clamp(share.div_ceil(u128::from(self.bytes_in)))
    }

    /// Size of a buffer for the largest chunk's input, output, or both.
    fn buffer_bytes(&self, input: bool, output: bool) -> u64 {
        let bytes_in = if input { self.chunk_bytes } else { 0 };
        let bytes_out = if output { self.most_bytes_out() } else { 0 };
        bytes_in.saturating_add(bytes_out)
    }

    fn start(&self, chunk: u64) -> u64 {
        chunk.saturating_mul(self.chunk_bytes).min(self.bytes_in)
    }
}
