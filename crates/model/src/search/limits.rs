//! What a plan may use.

use crate::pipeline::{Job, PlanError, Shape};

/// What a plan may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Device memory for the buffers of chunks.
    pub device_bytes: u64,
    /// Pinned memory for the rings of the express lane. Pinned input and output are there anyway.
    pub pinned_bytes: u64,
    /// Streams; more than 8 are never tried.
    pub streams_at_most: u32,
}

impl Default for Limits {
    /// No limits of memory, 8 streams.
    fn default() -> Self {
        Self {
            device_bytes: u64::MAX,
            pinned_bytes: u64::MAX,
            streams_at_most: 8,
        }
    }
}

impl Limits {
    /// Whether a shape stays within the limits.
    ///
    /// # Errors
    /// [`PlanError`] for `streams`, `device_bytes` or `pinned_bytes`, or with the field of the shape
    /// that makes no sense.
    pub fn check(&self, job: &Job, shape: &Shape) -> Result<(), PlanError> {
        let wanted = [
            ("streams", shape.streams.into(), self.streams_at_most.into()),
            ("device_bytes", shape.device_bytes(job)?, self.device_bytes),
            ("pinned_bytes", shape.pinned_bytes(job)?, self.pinned_bytes),
        ];
        for (field, wanted, most) in wanted {
            if wanted > most {
                let reason = format!("{wanted} wanted, at most {most} allowed");
                return Err(PlanError::invalid(field, reason));
            }
        }
        Ok(())
    }
}
