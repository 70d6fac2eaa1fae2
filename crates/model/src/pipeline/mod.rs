//! Jobs that flow through a device chunk by chunk, and their programs.
//!
//! ```text
//!   Job    what to do: bytes in, a kernel, bytes out, and where they are
//!   Shape  how: chunk size, streams, order, ring slots
//!     └─ program(job, profile) ──> schedule::Program, one to three host threads
//! ```
//!
//! Depth-first, a stream takes one chunk through all stages. Breadth-first, a group of chunks (one
//! per stream) takes each stage together. Stage streams are three, one per stage, joined by events.
//! A slot of the ring is reused once its previous chunk is done.

mod job;
mod kernel_time;
mod program;
mod shape;

use crate::schedule::ScheduleError;

pub use job::{Job, Memory};
pub use kernel_time::KernelTime;
pub(crate) use shape::Chunks;
pub use shape::{PipelineOrder, Shape};

/// Why a job cannot be planned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A value out of range.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// Which value: `chunk_bytes`, `streams`, `kernel`, …
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The program cannot be scheduled.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl PlanError {
    pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            reason: reason.into(),
        }
    }
}
