//! Which samples a rank sees in an epoch, and in which order.
//!
//! ```text
//!   samples 0..n ── Permutation (seed, epoch) ── one order shared by all ranks
//!      │  Shard    rank r of w takes positions r, r + w, r + 2w, …
//!      │  Tail     keep, drop or pad samples that do not divide evenly
//!      ▼
//!   SampleOrder ── sample(position), batch(number): computed on demand, nothing is stored
//!   EpochState  ── how far an epoch has come, to resume it later, also with other ranks
//! ```
//!
//! An order depends only on the number of samples, the seed, the epoch, the rank and the world size. The
//! batch size cuts it into batches and decides how much padding it gets.
//!
//! ```
//! use pinlane::load::{OrderConfig, SampleOrder, Shard};
//!
//! let config = OrderConfig::default()
//!     .seed(7)
//!     .shuffle(true)
//!     .batch(4)
//!     .shard(Shard::new(1, 2)?);
//! let order = SampleOrder::new(10, 0, &config)?;
//! assert_eq!(order.samples(), 5); // half of ten for each of two ranks
//! assert_eq!(order.batches(), 2);
//! assert_eq!(order.batch_len(1), 1);
//! let first: Vec<usize> = order.batch(0).map(|sample| sample.index).collect();
//! assert_eq!(first.len(), 4);
//! # Ok::<(), pinlane::load::OrderError>(())
//! ```

mod epoch_state;
mod error;
mod permutation;
mod shard;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::setters::setters;

pub use epoch_state::EpochState;
pub use error::OrderError;
pub use shard::Shard;

use permutation::Permutation;

/// What happens to samples that do not divide evenly over ranks and batches.
///
/// All ranks get the same number of samples and batches: collective training hangs if one has a step more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tail {
    /// The last batch may be shorter. Ranks that lack a sample repeat one, as [`padding`](Sample::padding).
    #[default]
    Keep,
    /// Samples that do not fill a batch on every rank are dropped: with shuffling, others in each epoch.
    Drop,
    /// The last batch is filled up with repeated samples, as [`padding`](Sample::padding).
    Pad,
}

/// Configuration of a [`SampleOrder`]. The default has all samples in dataset order, in batches of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OrderConfig {
    /// Seed of the shuffle.
    pub seed: u64,
    /// Whether to shuffle each epoch, rather than use dataset order.
    pub shuffle: bool,
    /// Samples in a batch.
    pub batch: usize,
    /// What happens to samples that do not divide evenly.
    pub tail: Tail,
    /// The rank of this process.
    pub shard: Shard,
}

impl OrderConfig {
    setters! { seed: u64, shuffle: bool, batch: usize, tail: Tail, shard: Shard }
}

impl Default for OrderConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            shuffle: false,
            batch: 1,
            tail: Tail::default(),
            shard: Shard::default(),
        }
    }
}

/// The samples of one rank in one epoch, in order, cut into batches.
///
/// All ranks have the same number of samples; see [`Tail`]. Any position is computed on demand.
#[derive(Clone, Debug)]
pub struct SampleOrder {
    /// Samples of the dataset.
    dataset_samples: u64,
    /// The place in the shared order at which this one begins. Earlier places were read before.
    start: u64,
    epoch: u64,
    config: OrderConfig,
    /// Samples of this rank, including padding.
    samples: usize,
    permutation: Option<Permutation>,
}

/// A sample's entry in the order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sample {
    /// Its index in the dataset.
    pub index: usize,
    /// Whether it is a repeat that only fills up a batch or a rank. Leave it out of sums over all samples.
    pub padding: bool,
}

impl SampleOrder {
    /// The order of a dataset of `samples` samples in an epoch.
    ///
    /// # Errors
    /// [`OrderError::BatchZero`]; [`OrderError::TooManySamples`] if padding to whole batches overflows.
    pub fn new(samples: usize, epoch: u64, config: &OrderConfig) -> Result<Self, OrderError> {
        Self::starting_at(0, samples, epoch, config)
    }

    /// The order of the samples from place `start` on. At most `samples`.
    fn starting_at(
        start: usize,
        samples: usize,
        epoch: u64,
        config: &OrderConfig,
    ) -> Result<Self, OrderError> {
        if config.batch == 0 {
            return Err(OrderError::BatchZero);
        }
        let permutation = || Permutation::new(samples as u64, config.seed, epoch);
        Ok(Self {
            dataset_samples: samples as u64,
            start: start as u64,
            epoch,
            config: *config,
            samples: samples_per_rank(samples - start, config)?,
            permutation: config.shuffle.then(permutation),
        })
    }

    /// The state after `batch` batches of this order.
    #[must_use]
    pub fn state(&self, batch: u64) -> EpochState {
        let samples = usize::try_from(self.dataset_samples).expect("it was one");
        EpochState {
            start: self.start,
            ..EpochState::new(self.epoch, batch, &self.config, samples)
        }
    }

    /// Number of samples of this rank, including padding.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Number of batches of this rank.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.samples.div_ceil(self.config.batch)
    }

    /// Number of samples in a batch; 0 past the last batch.
    #[must_use]
    pub fn batch_len(&self, batch: usize) -> usize {
        self.positions(batch).len()
    }

    /// The sample at a position of this rank's order.
    ///
    /// # Panics
    /// If the position is not less than [`samples`](Self::samples).
    #[must_use]
    pub fn sample(&self, position: usize) -> Sample {
        let samples = self.samples;
        assert!(
            position < samples,
            "position {position} is past the end of {samples} samples"
        );
        let shard = self.config.shard;
        let in_order = position as u128 * shard.world() as u128 + shard.rank() as u128;
        let place = in_order + u128::from(self.start);
        let all = u128::from(self.dataset_samples);
        let wrapped = u64::try_from(place % all).expect("less than the number of samples");
        let permutation = self.permutation.as_ref();
        let index = permutation.map_or(wrapped, |permutation| permutation.at(wrapped));
        Sample {
            index: usize::try_from(index).expect("less than the number of samples"),
            padding: place >= all,
        }
    }

    /// The samples of a batch; none past the last batch.
    pub fn batch(&self, batch: usize) -> impl ExactSizeIterator<Item = Sample> {
        self.positions(batch).map(|position| self.sample(position))
    }

    fn positions(&self, batch: usize) -> Range<usize> {
        let start = batch.saturating_mul(self.config.batch).min(self.samples);
        let end = start.saturating_add(self.config.batch).min(self.samples);
        start..end
    }
}

/// Number of samples of each rank, including padding.
fn samples_per_rank(samples: usize, config: &OrderConfig) -> Result<usize, OrderError> {
    let (world, batch) = (config.shard.world(), config.batch);
    match config.tail {
        Tail::Keep => Ok(samples.div_ceil(world)),
        Tail::Drop => Ok(samples / world / batch * batch),
        Tail::Pad => {
            let samples = samples.div_ceil(world);
            let padded = samples.checked_next_multiple_of(batch);
            padded.ok_or(OrderError::TooManySamples { samples, batch })
        }
    }
}
