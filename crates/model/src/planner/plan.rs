//! What a plan holds, and the limits it must keep.

use super::advice::{Advice, Bottleneck};
use crate::pipeline::{Job, PlanError, Shape};
use crate::schedule::Schedule;

/// The best way to do a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The best shape.
    pub shape: Shape,
    /// Its predicted duration.
    pub predicted_ns: u64,
    /// Its schedule, of the first 512 chunks at most.
    pub schedule: Schedule,
    /// Other ways, and their durations.
    pub alternatives: Vec<Alternative>,
    /// What limits it.
    pub bottleneck: Bottleneck,
    /// What would help.
    pub advice: Advice,
}

/// Another way to do the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// `serial, pageable`, `serial, pinned`, the name of an order (its best shape), `half the chunk`
    /// or `twice the chunk`. All but the first two only if the limits allow it.
    pub name: &'static str,
    /// Its shape; `None` if it is serial.
    pub shape: Option<Shape>,
    /// Its predicted duration.
    pub ns: u64,
}

/// Resources that a plan may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Device memory for the buffers of chunks.
    pub device_bytes: u64,
    /// Pinned memory for the express lane. Pinned input and output do not count.
    pub pinned_bytes: u64,
    /// Number of streams; more than [`STREAMS_MAX`](super::STREAMS_MAX) are never tried.
    pub streams_at_most: u32,
}

impl Default for Limits {
    /// Unlimited memory, 8 streams.
    fn default() -> Self {
        Self {
            device_bytes: u64::MAX,
            pinned_bytes: u64::MAX,
            streams_at_most: 8,
        }
    }
}

impl Limits {
    /// Checks that a shape is within the limits.
    ///
    /// # Errors
    /// [`PlanError`] for `streams`, `device_bytes` or `pinned_bytes`, or for an invalid shape.
    pub fn check(&self, job: &Job, shape: &Shape) -> Result<(), PlanError> {
        let needed = [
            ("streams", shape.streams.into(), self.streams_at_most.into()),
            ("device_bytes", shape.device_bytes(job)?, self.device_bytes),
            ("pinned_bytes", shape.pinned_bytes(job)?, self.pinned_bytes),
        ];
        for (field, needed, most) in needed {
            if needed > most {
                let reason = format!("{needed} needed, at most {most} allowed");
                return Err(PlanError::invalid(field, reason));
            }
        }
        Ok(())
    }
}
