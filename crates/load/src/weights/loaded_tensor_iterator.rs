//! The stream of tensors of a load into memory of its own.

use std::task::Poll;
use std::time::{Duration, Instant};

use super::job::Job;
use super::running_load::RunningLoad;
use super::{LoadConfig, LoadProgress, LoadStats, Tensor, Tensors};
use crate::LoadError;

/// A running load: an iterator over its tensors, in the order in which they complete. Dropping it cancels
/// the load and waits for its copies in flight.
pub struct LoadStream {
    running: RunningLoad,
}

impl LoadStream {
    pub(super) fn start(job: Job, config: &LoadConfig) -> Result<Self, LoadError> {
        let running = RunningLoad::start(job, config)?;
        Ok(Self { running })
    }

    /// Waits for all tensors, or the first error of the load.
    pub fn all(mut self) -> Result<Tensors, LoadError> {
        let tensors = self.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok(Tensors::new(tensors, self.stats()))
    }

    /// The next tensor, or `Pending` if none completes within `timeout`. The load continues either way.
    pub fn next_within(&mut self, timeout: Duration) -> Poll<Option<Result<Tensor, LoadError>>> {
        self.next_by(Instant::now().checked_add(timeout))
    }

    /// Statistics so far.
    #[must_use]
    pub fn stats(&self) -> LoadStats {
        self.running.stats()
    }

    /// Progress, as of the last tensor taken.
    #[must_use]
    pub fn progress(&self) -> LoadProgress {
        self.running.progress()
    }

    fn next_by(&mut self, deadline: Option<Instant>) -> Poll<Option<Result<Tensor, LoadError>>> {
        let next = self.running.next_by(deadline);
        next.map(|next| Some(next?.map(|number| self.running.job.tensor(number))))
    }
}

impl Iterator for LoadStream {
    type Item = Result<Tensor, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_by(None) {
            Poll::Ready(next) => next,
            Poll::Pending => unreachable!("there is no deadline"),
        }
    }
}

impl std::fmt::Debug for LoadStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadStream")
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}
