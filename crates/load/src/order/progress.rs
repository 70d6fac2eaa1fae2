//! How far an epoch has come.

use serde::{Deserialize, Serialize};

use super::{Order, OrderConfig, OrderError, Tail};

/// How far an epoch has come, and of which order: what is saved to go on later with exactly the
/// samples that were left.
///
/// ```
/// use pinlane::load::{OrderConfig, OrderError, Progress};
///
/// let config = OrderConfig { seed: 7, shuffle: true, batch: 32, ..OrderConfig::default() };
/// let saved = serde_json::to_string(&Progress::new(3, 20, &config, 1_000))?;
///
/// let progress: Progress = serde_json::from_str(&saved)?;
/// progress.check(&config, 1_000)?;
/// assert_eq!((progress.epoch, progress.batch), (3, 20));
///
/// let other = OrderConfig { seed: 8, ..config };
/// let error = progress.check(&other, 1_000).unwrap_err();
/// assert!(matches!(error, OrderError::StateDiffers { field: "seed", .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// Of this layout.
    pub version: u32,
    /// The epoch.
    pub epoch: u64,
    /// Batches of the epoch that are done, which is the number of the next one.
    pub batch: u64,
    /// Seed of the order.
    pub seed: u64,
    /// Whether it is shuffled.
    pub shuffle: bool,
    /// Samples of the dataset.
    pub samples: u64,
    /// Samples of a batch.
    pub batch_size: u64,
    /// What becomes of samples that do not divide evenly.
    pub tail: Tail,
    /// The rank that saved it.
    pub rank: u64,
    /// How many ranks there were.
    pub world: u64,
}

impl Progress {
    /// What is written, and can be read.
    pub const VERSION: u32 = 1;

    /// `batch` batches of `epoch` are done, of a dataset with this many samples.
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

    /// Whether it can be gone on with here.
    ///
    /// # Errors
    /// [`OrderError::StateVersion`]; [`OrderError::StateDiffers`] for the first thing that is
    /// another one here; [`OrderError::StateBatch`] for more batches than there are; and those of
    /// [`Order::new`].
    pub fn check(&self, config: &OrderConfig, samples: usize) -> Result<(), OrderError> {
        if self.version != Self::VERSION {
            return Err(OrderError::StateVersion {
                found: self.version,
                known: Self::VERSION,
            });
        }
        let here = Self::new(self.epoch, self.batch, config, samples);
        same("samples", self.samples, here.samples)?;
        same("world", self.world, here.world)?;
        same("rank", self.rank, here.rank)?;
        same("seed", self.seed, here.seed)?;
        same("shuffle", self.shuffle, here.shuffle)?;
        same("batch size", self.batch_size, here.batch_size)?;
        same("tail", tail(self.tail), tail(here.tail))?;
        let batches = Order::new(samples, self.epoch, config)?.batches() as u64;
        match self.batch > batches {
            true => Err(OrderError::StateBatch {
                saved: self.batch,
                batches,
            }),
            false => Ok(()),
        }
    }
}

fn same<T: PartialEq + ToString>(field: &'static str, saved: T, here: T) -> Result<(), OrderError> {
    match saved == here {
        true => Ok(()),
        false => Err(OrderError::StateDiffers {
            field,
            saved: saved.to_string(),
            here: here.to_string(),
        }),
    }
}

/// As it is saved.
fn tail(tail: Tail) -> &'static str {
    match tail {
        Tail::Keep => "keep",
        Tail::Drop => "drop",
        Tail::Pad => "pad",
    }
}
