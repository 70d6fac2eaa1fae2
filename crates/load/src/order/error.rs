//! What can be wrong with an order.

/// Why there is no order, or no going on with one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// Batches of no samples.
    #[error("a batch has at least one sample")]
    BatchZero,
    /// A world without ranks.
    #[error("a world has at least one rank")]
    WorldZero,
    /// A rank that is not in its world.
    #[error("there is no rank {rank} in a world of {world}: ranks count from 0")]
    RankOutsideWorld {
        /// The rank.
        rank: usize,
        /// How many there are.
        world: usize,
    },
    /// Filled up to whole batches, the samples are more than can be counted.
    #[error("{samples} samples filled up to batches of {batch} are more than can be counted")]
    TooManySamples {
        /// Samples of this rank.
        samples: usize,
        /// Samples of a batch.
        batch: usize,
    },
    /// A variable of the environment that is no number, or not a possible one.
    #[error("the variable {variable} is {value:?}, {expected} was expected")]
    BadVariable {
        /// Its name.
        variable: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: String,
    },
    /// One of two variables that belong together is not set.
    #[error("the variable {missing} is not set, but {set} is; set both or none")]
    MissingVariable {
        /// The one that is not set.
        missing: &'static str,
        /// The one that is.
        set: &'static str,
    },
    /// A state that another version of the library wrote.
    #[error("the state is of version {found}, this is version {known}")]
    StateVersion {
        /// What the state says.
        found: u32,
        /// What can be read.
        known: u32,
    },
    /// A state of another dataset, another shard or another configuration.
    #[error("the state was saved with {field} {saved}, but {field} is {here} here")]
    StateDiffers {
        /// What differs.
        field: &'static str,
        /// What the state says.
        saved: String,
        /// What it is here.
        here: String,
    },
    /// A state with more batches done than the epoch has.
    #[error("the state has {saved} batches done, but an epoch has {batches}")]
    StateBatch {
        /// What the state says.
        saved: u64,
        /// How many there are.
        batches: u64,
    },
}

impl From<OrderError> for pinlane_core::Error {
    fn from(error: OrderError) -> Self {
        Self::other(pinlane_core::ErrorKind::InvalidInput, error)
    }
}
