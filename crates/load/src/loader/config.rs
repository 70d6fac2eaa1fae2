//! Configuration of a loader.

use std::{env, thread};

use crate::setters::setters;
use crate::{OrderConfig, Shard, Tail};
use pinlane_core::Device;
use pinlane_core::internal::local_world_size;

use super::{DeviceTransform, LoaderError, Result};

/// Configuration of a [`Loader`](super::Loader).
///
/// ```
/// use pinlane::load::{LoaderConfig, Shard};
///
/// let config = LoaderConfig::default().batch(64).shuffle(true).shard("0/4".parse()?);
/// assert_eq!((config.batch, config.shard), (64, Shard::new(0, 4)?));
/// # Ok::<(), pinlane::load::OrderError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LoaderConfig {
    /// Samples in a batch. Default: 1.
    pub batch: usize,
    /// Whether to shuffle each epoch, rather than use dataset order.
    pub shuffle: bool,
    /// Seed of the shuffle.
    pub seed: u64,
    /// What happens to samples that do not divide evenly.
    pub tail: Tail,
    /// The rank of this process.
    pub shard: Shard,
    /// Threads that read samples. By default three quarters of the CPUs of this process, divided by the
    /// processes that a launcher started here (`LOCAL_WORLD_SIZE` and similar); one on a simulated device.
    /// Set it if each process has its own CPUs. 0 reads on the consumer's thread: slow, but deterministic.
    pub workers: Option<usize>,
    /// Batches to prepare ahead of the consumer, from 1 to 1024. Default: 3.
    pub prefetch: usize,
    /// What happens when a sample cannot be read.
    pub on_error: OnError,
    /// Fields to transform on the device after the copy, by name.
    pub device_transforms: Vec<(String, DeviceTransform)>,
    /// Limit of pinned memory, in bytes. One batch is always pinned, whatever its size. Default: 512 MiB.
    pub pinned_bytes: usize,
}

/// What happens when a sample cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The epoch ends with an error at the sample's batch.
    #[default]
    Fail,
    /// It is left out and listed in [`Batch::skipped`](super::Batch::skipped). A panic still ends the epoch, and so does
    /// an error that says so ([`SampleError::ending_epoch`](crate::SampleError::ending_epoch)).
    Skip,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self {
            batch: 1,
            shuffle: false,
            seed: 0,
            tail: Tail::default(),
            shard: Shard::default(),
            workers: None,
            prefetch: 3,
            on_error: OnError::default(),
            device_transforms: Vec::new(),
            pinned_bytes: 512 << 20,
        }
    }
}

const WORKERS_MAX: usize = 256;
const PREFETCH_MAX: usize = 1024;

impl LoaderConfig {
    setters! {
        batch: usize,
        shuffle: bool,
        seed: u64,
        tail: Tail,
        shard: Shard,
        prefetch: usize,
        on_error: OnError,
        device_transforms: Vec<(String, DeviceTransform)>,
        pinned_bytes: usize,
    }

    /// Sets [`workers`](field@Self::workers): a number, or `None` for the default.
    #[must_use]
    pub fn workers(mut self, workers: impl Into<Option<usize>>) -> Self {
        self.workers = workers.into();
        self
    }

    /// Adds a step to [`device_transforms`](field@Self::device_transforms).
    #[must_use]
    pub fn device_transform(mut self, field: impl Into<String>, step: DeviceTransform) -> Self {
        self.device_transforms.push((field.into(), step));
        self
    }

    /// The part that determines the order of samples.
    #[must_use]
    pub fn order(&self) -> OrderConfig {
        OrderConfig {
            seed: self.seed,
            shuffle: self.shuffle,
            batch: self.batch,
            tail: self.tail,
            shard: self.shard,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let (field, reason) = match (self.prefetch, self.workers) {
            (prefetch, _) if !(1..=PREFETCH_MAX).contains(&prefetch) => (
                "prefetch",
                format!("{prefetch} is not from 1 to {PREFETCH_MAX}"),
            ),
            (_, Some(workers)) if workers > WORKERS_MAX => {
                ("workers", format!("{workers} is more than {WORKERS_MAX}"))
            }
            _ => return Ok(()),
        };
        Err(LoaderError::Config { field, reason })
    }

    /// The number of threads that read samples.
    pub(super) fn workers_on(&self, device: &Device) -> usize {
        match self.workers {
            Some(workers) => workers,
            None if device.info().simulated.is_some() => 1,
            None => {
                let cpus = thread::available_parallelism().map_or(1, usize::from);
                workers_for(cpus, local_world_size(|name| env::var(name).ok()))
            }
        }
    }

    /// The number of pinned slots: one or two to fill, one or two being copied, however many are prefetched.
    pub(super) fn slots(&self, slot_bytes: usize) -> usize {
        let wanted = (self.prefetch + 1).min(4);
        wanted.min(self.pinned_bytes / slot_bytes.max(1)).max(1)
    }
}

/// The number of threads of each of `processes` processes that share `cpus` CPUs.
fn workers_for(cpus: usize, processes: u64) -> usize {
    let share = (cpus - cpus / 4) as u64 / processes.max(1);
    usize::try_from(share).map_or(1, |share| share.clamp(1, WORKERS_MAX))
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
