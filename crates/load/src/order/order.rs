//! The samples of one rank in one epoch.

use super::permutation::Permutation;
use super::{OrderConfig, OrderError, Shard, Tail};

/// The samples of one rank in one epoch, in order, cut into batches.
///
/// All ranks have the same number of them; see [`Tail`] for how that comes. Nothing is stored: any
/// place of an order of any length is computed when it is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// Of all ranks.
    all: u64,
    shard: Shard,
    batch: usize,
    /// Of this rank, with padding.
    samples: usize,
    shuffled: Option<Permutation>,
}

/// A sample's place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sample {
    /// Its number in the dataset.
    pub index: usize,
    /// Whether it comes again, only to fill up: it should not count in a sum over all samples.
    pub padding: bool,
}

impl Order {
    /// The order of a dataset with this many samples in this epoch.
    ///
    /// # Errors
    /// [`OrderError::BatchZero`]; [`OrderError::TooManySamples`] for batches so large that they
    /// cannot be filled up.
    pub fn new(samples: usize, epoch: u64, config: &OrderConfig) -> Result<Self, OrderError> {
        let OrderConfig { batch, shard, .. } = *config;
        if batch == 0 {
            return Err(OrderError::BatchZero);
        }
        let all = samples as u64;
        Ok(Self {
            all,
            shard,
            batch,
            samples: of_a_rank(samples, config)?,
            shuffled: config
                .shuffle
                .then(|| Permutation::new(all, config.seed, epoch)),
        })
    }

    /// How many samples this rank has, padding included.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// How many batches it has.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.samples.div_ceil(self.batch)
    }

    /// How many samples a batch has; none if there is no such batch.
    #[must_use]
    pub fn batch_len(&self, batch: usize) -> usize {
        self.positions(batch).len()
    }

    /// The sample at a position of this rank's order.
    ///
    /// # Panics
    /// When the position is not less than [`samples`](Self::samples).
    #[must_use]
    pub fn sample(&self, position: usize) -> Sample {
        let samples = self.samples;
        assert!(
            position < samples,
            "there are {samples} samples, none at {position}"
        );
        let world = self.shard.world() as u128;
        let place = position as u128 * world + self.shard.rank() as u128;
        let all = u128::from(self.all);
        let wrapped = u64::try_from(place % all).expect("less than the number of samples");
        let index = match &self.shuffled {
            Some(permutation) => permutation.at(wrapped),
            None => wrapped,
        };
        Sample {
            index: usize::try_from(index).expect("less than the number of samples"),
            padding: place >= all,
        }
    }

    /// The samples of a batch; none if there is no such batch.
    pub fn batch(&self, batch: usize) -> impl ExactSizeIterator<Item = Sample> {
        self.positions(batch).map(|position| self.sample(position))
    }

    fn positions(&self, batch: usize) -> std::ops::Range<usize> {
        let start = batch.saturating_mul(self.batch).min(self.samples);
        let end = start.saturating_add(self.batch).min(self.samples);
        start..end
    }
}

/// How many samples each rank has, padding included.
fn of_a_rank(samples: usize, config: &OrderConfig) -> Result<usize, OrderError> {
    let (world, batch) = (config.shard.world(), config.batch);
    match config.tail {
        Tail::Keep => Ok(samples.div_ceil(world)),
        Tail::Drop => Ok(samples / world / batch * batch),
        Tail::Pad => {
            let samples = samples.div_ceil(world);
            samples
                .checked_next_multiple_of(batch)
                .ok_or(OrderError::TooManySamples { samples, batch })
        }
    }
}
