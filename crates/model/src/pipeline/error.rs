//! Why there is no plan.

use crate::schedule::ScheduleError;

/// A job, shape or limit that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A value that makes no sense.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// Which value: `chunk_bytes`, `streams`, `kernel`, …
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The program has no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl PlanError {
    /// A wrong value.
    pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            reason: reason.into(),
        }
    }
}
