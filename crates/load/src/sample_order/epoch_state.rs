//! How far an epoch has come.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{OrderConfig, OrderError, SampleOrder, Shard, Tail};

/// How far an epoch has come, and in which order. Save it to resume later with the samples that are left, also with
/// another number of ranks or another batch size.
///
/// All ranks share one order, of which a prefix has been read after every batch. So the state of one rank is that of all:
/// each of the new ranks resumes with it, and every sample that is left comes once. All of them must use the state of the
/// same step.
///
/// ```
/// use pinlane::load::{EpochState, OrderConfig, Shard};
///
/// // Two ranks have read 5 batches of 32 samples each: 320 of 1000.
/// let config = OrderConfig::default().seed(7).shuffle(true).batch(32).shard(Shard::new(0, 2)?);
/// let saved = serde_json::to_string(&EpochState::new(3, 5, &config, 1_000))?;
///
/// // Three go on.
/// let state: EpochState = serde_json::from_str(&saved)?;
/// let config = config.shard(Shard::new(1, 3)?);
/// let (order, first) = state.remaining(&config, 1_000)?;
/// assert_eq!((order.samples(), first), (680_usize.div_ceil(3), 0));
///
/// assert!(state.check(&config.seed(8), 1_000).is_err()); // another order
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochState {
    /// Version of this layout.
    pub version: u32,
    /// The epoch.
    pub epoch: u64,
    /// Completed batches of the order from `start` on, which is also the number of the next one.
    pub batch: u64,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Whether the order is shuffled.
    pub shuffle: bool,
    /// Samples in the dataset.
    pub samples: u64,
    /// Samples in a batch.
    pub batch_size: u64,
    /// What happens to samples that do not divide evenly.
    pub tail: Tail,
    /// The rank that saved it.
    pub rank: u64,
    /// The number of ranks.
    pub world: u64,
    /// Samples of the epoch that were read before, in batches of other sizes or with other ranks.
    #[serde(default)]
    pub start: u64,
}

impl EpochState {
    /// The version that this library writes. It reads version 1, too, which has no `start`.
    pub const VERSION: u32 = 2;

    /// The state after `batch` batches of `epoch`, for a dataset of `samples` samples.
    #[must_use]
    pub fn new(epoch: u64, batch: u64, config: &OrderConfig, samples: usize) -> Self {
        Self {
            version: Self::VERSION,
            epoch,
            batch,
            seed: config.seed,
            shuffle: config.shuffle,
            samples: samples as u64,
            batch_size: config.batch as u64,
            tail: config.tail,
            rank: config.shard.rank() as u64,
            world: config.shard.world() as u64,
            start: 0,
        }
    }

    /// Check that the epoch can be resumed with this configuration.
    ///
    /// # Errors
    /// As for [`remaining`](Self::remaining).
    pub fn check(&self, config: &OrderConfig, samples: usize) -> Result<(), OrderError> {
        self.remaining(config, samples).map(drop)
    }

    /// What is left of the epoch for the rank of this configuration: an order, and its first batch that was not read.
    /// With the ranks and the batch size that it was saved with, batches have the same numbers as before; otherwise
    /// they count from 0.
    ///
    /// # Errors
    /// [`OrderError::StateVersion`]; [`OrderError::StateDiffers`] if the dataset, the seed or the tail is another one;
    /// [`OrderError::StateBatch`] and [`OrderError::StateStart`] if the epoch has fewer batches or samples; and those of [`Shard::new`] and
    /// [`SampleOrder::new`].
    pub fn remaining(
        &self,
        config: &OrderConfig,
        samples: usize,
    ) -> Result<(SampleOrder, u64), OrderError> {
        if !(1..=Self::VERSION).contains(&self.version) {
            let (found, known) = (self.version, Self::VERSION);
            return Err(OrderError::StateVersion { found, known });
        }
        let here = Self::new(self.epoch, self.batch, config, samples);
        same("samples", self.samples, here.samples)?;
        same("seed", self.seed, here.seed)?;
        same("shuffle", self.shuffle, here.shuffle)?;
        same("tail", self.tail, here.tail)?;

        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let saved = OrderConfig {
            batch: number(self.batch_size),
            shard: Shard::new(number(self.rank), number(self.world))?,
            ..*config
        };
        if self.start > samples as u64 {
            let start = self.start;
            return Err(OrderError::StateStart { start, samples });
        }
        let start = number(self.start);
        let order = SampleOrder::starting_at(start, samples, self.epoch, &saved)?;
        let batches = order.batches() as u64;
        if self.batch > batches {
            let saved = self.batch;
            return Err(OrderError::StateBatch { saved, batches });
        }
        if (self.world, self.batch_size) == (here.world, here.batch_size) {
            let order = SampleOrder::starting_at(start, samples, self.epoch, config)?;
            return Ok((order, self.batch));
        }
        let start = match self.batch == batches {
            // Samples that the tail dropped stay dropped.
            true => samples,
            false => start + number(self.batch) * saved.batch * saved.shard.world(),
        };
        let order = SampleOrder::starting_at(start, samples, self.epoch, config)?;
        Ok((order, 0))
    }
}

fn same<T: PartialEq + Debug>(field: &'static str, saved: T, here: T) -> Result<(), OrderError> {
    if saved == here {
        return Ok(());
    }
    let text = |value| format!("{value:?}").to_lowercase(); // `Tail` as it is serialized
    let (saved, here) = (text(saved), text(here));
    Err(OrderError::StateDiffers { field, saved, here })
}
