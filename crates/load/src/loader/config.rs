//! How a loader is set up.

use std::{env, thread};

use crate::{OrderConfig, Shard, Tail};
use pinlane_core::Device;
use pinlane_core::memory::local_world_size;

use super::{Finish, LoaderError};

/// How a [`Loader`](super::Loader) is set up.
#[derive(Clone, PartialEq, Debug)]
pub struct LoaderConfig {
    /// Samples of a batch.
    pub batch: usize,
    /// Whether each epoch has an order of its own. Otherwise samples come as they are numbered.
    pub shuffle: bool,
    /// What the order depends on, beside the epoch and the shard.
    pub seed: u64,
    /// What becomes of the last batch.
    pub tail: Tail,
    /// Which part of the samples is for this process.
    pub shard: Shard,
    /// Threads that read samples. By default three of four CPUs that this process may use, divided by
    /// the processes that a launcher says it has started on this machine (`LOCAL_WORLD_SIZE` and its
    /// like); one on a simulated device. Where a launcher has bound each process to CPUs of its own,
    /// give the number. With 0 the thread that asks for a batch reads it, and some more ahead: slow, and
    /// the same in every run.
    pub workers: Option<usize>,
    /// Batches that are made ready ahead of the consumer, from 1 to 1024.
    pub prefetch: usize,
    /// What a sample that cannot be had comes to.
    pub on_error: OnError,
    /// Fields that the device turns into something else once they are there, by name.
    pub finish: Vec<(String, Finish)>,
    /// The most that is page-locked, in bytes. One batch is, whatever it takes.
    pub pinned_bytes: usize,
}

/// What a sample that cannot be had comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnError {
    /// The epoch ends with an error, in the place of the sample's batch.
    #[default]
    Fail,
    /// The sample is left out of its batch, and told by [`Batch::skipped`](super::Batch::skipped). A
    /// dataset that panics still ends the epoch.
    Skip,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            batch: 1,
            shuffle: false,
            seed: 0,
            tail: Tail::Keep,
            shard: Shard::whole(),
            workers: None,
            prefetch: 3,
            on_error: OnError::Fail,
            finish: Vec::new(),
            pinned_bytes: 512 << 20,
        }
    }
}

/// More threads than this only get into each other's way.
const WORKERS_AT_MOST: usize = 256;

/// More batches than this are a mistake.
const PREFETCH_AT_MOST: usize = 1024;

impl LoaderConfig {
    /// What the order of the samples depends on.
    pub(super) fn order(&self) -> OrderConfig {
        OrderConfig {
            seed: self.seed,
            shuffle: self.shuffle,
            batch: self.batch,
            tail: self.tail,
            shard: self.shard,
        }
    }

    pub(super) fn check(&self) -> Result<(), LoaderError> {
        let wrong = |field, reason: &str| {
            let reason = reason.to_owned();
            Err(LoaderError::Config { field, reason })
        };
        if !(1..=PREFETCH_AT_MOST).contains(&self.prefetch) {
            return wrong("prefetch", "between 1 and 1024 batches");
        }
        if self
            .workers
            .is_some_and(|workers| workers > WORKERS_AT_MOST)
        {
            return wrong("workers", "at most 256");
        }
        Ok(())
    }

    /// Threads that read samples.
    pub(super) fn workers_on(&self, device: &Device) -> usize {
        let by_default = || {
            if device.info().simulated.is_some() {
                return 1;
            }
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            workers_for(cpus, local_world_size(|name| env::var(name).ok()))
        };
        self.workers.unwrap_or_else(by_default)
    }

    /// Page-locked slots: one or two are written while one or two are copied. What is copied needs
    /// none, so more prefetching needs no more of them.
    pub(super) fn slots(&self, slot_bytes: usize) -> usize {
        let wanted = (self.prefetch + 1).min(4);
        wanted.min(self.pinned_bytes / slot_bytes.max(1)).max(1)
    }
}

/// Threads of one of so many processes that share these CPUs.
fn workers_for(cpus: usize, processes: u64) -> usize {
    let share = (cpus - cpus / 4) as u64 / processes.max(1);
    usize::try_from(share).map_or(1, |share| share.clamp(1, WORKERS_AT_MOST))
}

#[cfg(test)]
mod tests {
    use super::workers_for;

    #[test]
    fn processes_share_the_cpus() {
        for (cpus, processes, workers) in [
            (1, 1, 1),
            (4, 1, 3),
            (16, 1, 12),
            (16, 4, 3),
            (16, 5, 2),
            (16, 100, 1),
            (64, 0, 48),
            (2048, 1, 256),
            (2048, 8, 192),
        ] {
            assert_eq!(workers_for(cpus, processes), workers, "{cpus} {processes}");
        }
    }
}
