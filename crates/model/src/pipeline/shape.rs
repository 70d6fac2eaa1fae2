//! How a job is cut and issued.

use super::{Cut, Job, Memory, PlanError};

/// In which order the steps of chunks are submitted, and to which streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Order {
    /// Chunk by chunk: copy in, kernel, copy out, on stream chunk mod streams.
    DepthFirst,
    /// Group by group, one chunk a stream: all copies in, all kernels, all copies out.
    BreadthFirst,
    /// Three streams, one for the copies in, one for the kernels, one for the copies out.
    StageStreams,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DepthFirst, Self::BreadthFirst, Self::StageStreams];

    /// The streams of [`StageStreams`](Self::StageStreams).
    pub const STAGES: u32 = 3;

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DepthFirst => "depth-first",
            Self::BreadthFirst => "breadth-first",
            Self::StageStreams => "stage streams",
        }
    }
}

/// How a job is cut and issued.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Input bytes of a chunk.
    pub chunk_bytes: u64,
    /// Streams; 3 for [`Order::StageStreams`].
    pub streams: u32,
    /// Order of submission.
    pub order: Order,
    /// Chunks that have buffers at the same time. At least as many as streams, except for
    /// [`Order::StageStreams`].
    pub ring_slots: u32,
}

/// Streams of [`Order::StageStreams`].
pub(crate) const STAGES: u32 = 3;

/// The ring of the express lane, which all copies share.
const EXPRESS_RING_BYTES: u64 = 96 << 20;

/// Longest program that is written down.
const CHUNKS_MAX: u64 = 1 << 22;

impl Shape {
    /// Device memory for the buffers of a job.
    ///
    /// # Errors
    /// [`PlanError`] for a shape that makes no sense.
    pub fn device_bytes(&self, job: &Job) -> Result<u64, PlanError> {
        let cut = self.cut(job)?;
        let mut bytes = 0_u64;
        if job.copies_in() {
            bytes = bytes.saturating_add(cut.chunk_bytes);
        }
        if job.copies_out() {
            bytes = bytes.saturating_add(cut.most_bytes_out());
        }
        Ok(bytes.saturating_mul(self.slots_used(&cut)))
    }

    /// Pinned memory that the express lane takes for a job at most.
    ///
    /// # Errors
    /// [`PlanError`] for a shape that makes no sense.
    pub fn pinned_bytes(&self, job: &Job) -> Result<u64, PlanError> {
        let cut = self.cut(job)?;
        let mut bytes = 0_u64;
        if job.input == Memory::Express {
            bytes = bytes.saturating_add(cut.chunk_bytes);
        }
        if job.output == Memory::Express {
            bytes = bytes.saturating_add(cut.most_bytes_out());
        }
        Ok(bytes.min(EXPRESS_RING_BYTES))
    }

    fn slots_used(&self, cut: &Cut) -> u64 {
        u64::from(self.ring_slots).min(cut.count)
    }

    /// The job in chunks, if the shape makes sense.
    pub(crate) fn cut(&self, job: &Job) -> Result<Cut, PlanError> {
        if job.bytes_in == 0 {
            return Err(PlanError::invalid("bytes_in", "must be at least 1"));
        }
        let cut = Cut::new(job, self.chunk_bytes)?;
        match (self.order, self.streams) {
            (_, 0) => return Err(PlanError::invalid("streams", "must be at least 1")),
            (Order::StageStreams, STAGES) => {}
            (Order::StageStreams, other) => {
                let reason = format!("{other}: one a stage is {STAGES}");
                return Err(PlanError::invalid("streams", reason));
            }
            _ => {}
        }
        let least = match self.order {
            Order::StageStreams => 1,
            _ => self.streams,
        };
        if self.ring_slots < least {
            let reason = format!("must be at least {least}, is {}", self.ring_slots);
            return Err(PlanError::invalid("ring_slots", reason));
        }
        Ok(cut)
    }

    /// The same, where a program is to be written down.
    pub(crate) fn cut_for_program(&self, job: &Job) -> Result<Cut, PlanError> {
        let cut = self.cut(job)?;
        if cut.count > CHUNKS_MAX {
            let reason = format!("{} chunks, at most {CHUNKS_MAX}", cut.count);
            return Err(PlanError::invalid("chunk_bytes", reason));
        }
        Ok(cut)
    }
}
