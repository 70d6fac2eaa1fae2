//! How far an epoch has come.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{OrderConfig, OrderError, SampleOrder, Tail};

/// How far an epoch has come, and in which order. Save it to resume later with the samples that are left.
///
/// ```
/// use pinlane::load::{EpochState, OrderConfig, OrderError};
///
/// let config = OrderConfig::default().seed(7).shuffle(true).batch(32);
/// let saved = serde_json::to_string(&EpochState::new(3, 20, &config, 1_000))?;
///
/// let state: EpochState = serde_json::from_str(&saved)?;
/// state.check(&config, 1_000)?;
/// assert_eq!((state.epoch, state.batch), (3, 20));
///
/// let error = state.check(&config.seed(8), 1_000).unwrap_err();
/// assert!(matches!(error, OrderError::StateDiffers { field: "seed", .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochState {
    /// Version of this layout.
    pub version: u32,
    /// The epoch.
    pub epoch: u64,
    /// Completed batches of the epoch, which is also the number of the next one.
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
}

impl EpochState {
    /// The version that this library reads and writes.
    pub const VERSION: u32 = 1;

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
        }
    }

    /// Check that the epoch can be resumed with this configuration.
    ///
    /// # Errors
    /// [`OrderError::StateVersion`], [`OrderError::StateDiffers`], [`OrderError::StateBatch`], and those of
    /// [`SampleOrder::new`].
    pub fn check(&self, config: &OrderConfig, samples: usize) -> Result<(), OrderError> {
        if self.version != Self::VERSION {
            let (found, known) = (self.version, Self::VERSION);
            return Err(OrderError::StateVersion { found, known });
        }
        let here = Self::new(self.epoch, self.batch, config, samples);
        same("samples", self.samples, here.samples)?;
        same("world", self.world, here.world)?;
        same("rank", self.rank, here.rank)?;
        same("seed", self.seed, here.seed)?;
        same("shuffle", self.shuffle, here.shuffle)?;
        same("batch size", self.batch_size, here.batch_size)?;
        same("tail", self.tail, here.tail)?;
        let batches = SampleOrder::new(samples, self.epoch, config)?.batches() as u64;
        let saved = self.batch;
        match saved > batches {
            true => Err(OrderError::StateBatch { saved, batches }),
            false => Ok(()),
        }
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
