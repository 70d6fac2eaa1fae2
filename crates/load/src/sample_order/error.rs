//! Errors of sample orders and shards.

/// An order or a shard is invalid, or a saved state does not belong to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The batch size is 0.
    #[error("the batch size must be at least 1")]
    BatchZero,
    /// The world size is 0.
    #[error("the world size must be at least 1")]
    WorldZero,
    /// The rank is not less than the world size.
    #[error("there is no rank {rank} in a world of {world}; ranks count from 0")]
    RankOutsideWorld {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        world: usize,
    },
    /// A text is not a shard.
    #[error("{text:?} is not a shard; write rank/world, such as 0/8 for the first of eight")]
    BadShard {
        /// The text.
        text: String,
    },
    /// Padding to whole batches overflows the number of samples.
    #[error("{samples} samples padded to batches of {batch} overflow")]
    TooManySamples {
        /// Samples of this rank.
        samples: usize,
        /// Samples in a batch.
        batch: usize,
    },
    /// An environment variable has an invalid value.
    #[error("the environment variable {variable} is {value:?}; expected {expected}")]
    BadVariable {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it should hold.
        expected: String,
    },
    /// One of two environment variables is not set.
    #[error("the environment variable {missing} is not set, but {set} is; set both or neither")]
    MissingVariable {
        /// The one that is not set.
        missing: &'static str,
        /// The one that is.
        set: &'static str,
    },
    /// The state has an unknown version.
    #[error("the saved state has version {found}; this library reads version {known}")]
    StateVersion {
        /// Version of the state.
        found: u32,
        /// Version of this library.
        known: u32,
    },
    /// The state belongs to another dataset, shard or configuration.
    #[error("the state was saved with {field} {saved}, but {field} is now {here}")]
    StateDiffers {
        /// What differs.
        field: &'static str,
        /// The saved value.
        saved: String,
        /// The value now.
        here: String,
    },
    /// The state counts more batches than the epoch has.
    #[error("the saved state has {saved} completed batches, but an epoch has {batches}")]
    StateBatch {
        /// Batches of the state.
        saved: u64,
        /// Batches of the epoch.
        batches: u64,
    },
    /// The state begins behind the last sample.
    #[error("the saved state begins at sample {start}, but the dataset has {samples} samples")]
    StateStart {
        /// Where the state begins.
        start: u64,
        /// Samples of the dataset.
        samples: usize,
    },
}

impl From<OrderError> for pinlane_core::Error {
    fn from(error: OrderError) -> Self {
        Self::other(pinlane_core::ErrorKind::InvalidInput, error)
    }
}
