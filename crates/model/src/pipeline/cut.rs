//! A job in chunks.

use super::{Job, PlanError};

/// A job cut into chunks of one size, the last as long as is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    bytes_in: u64,
    bytes_out: u64,
    pub(crate) chunk_bytes: u64,
    /// Number of chunks.
    pub(crate) count: u64,
}

impl Cut {
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
        self.out_before(self.start(chunk + 1)) - self.out_before(self.start(chunk))
    }

    /// Output bytes of the largest chunk.
    pub(crate) fn most_bytes_out(&self) -> u64 {
        let share = u128::from(self.bytes_out) * u128::from(self.chunk_bytes);
        let most = share.div_ceil(u128::from(self.bytes_in));
        u64::try_from(most).unwrap_or(u64::MAX)
    }

    /// Bytes of the largest chunk, input or output.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.chunk_bytes.max(self.most_bytes_out())
    }

    fn start(&self, chunk: u64) -> u64 {
        chunk.saturating_mul(self.chunk_bytes).min(self.bytes_in)
    }

    /// Output of the input before this byte.
    fn out_before(&self, byte: u64) -> u64 {
        let before = u128::from(self.bytes_out) * u128::from(byte) / u128::from(self.bytes_in);
        // At most all output, since it is at most all input.
        u64::try_from(before).unwrap_or(u64::MAX)
    }
}
