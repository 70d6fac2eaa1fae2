//! What an order is made from.

use serde::{Deserialize, Serialize};

use super::Shard;

/// What becomes of samples that do not divide evenly over ranks and batches.
///
/// All ranks always have the same number of samples and of batches, since collective training hangs
/// where one rank has a step more than another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// The last batch is shorter. Ranks that come short by a sample get one again, marked as
    /// [`padding`](super::Sample::padding): fewer than there are ranks, over all of them.
    #[default]
    Keep,
    /// What does not fill a batch on every rank is left out: fewer samples than all ranks together
    /// have in one batch. With shuffling these are others in every epoch.
    Drop,
    /// The last batch is filled up with samples again, marked as
    /// [`padding`](super::Sample::padding).
    Pad,
}

/// What an order is made from, but for the number of samples and the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderConfig {
    /// Which of all shuffled orders. Without shuffling it does nothing.
    pub seed: u64,
    /// Whether samples come in another order in each epoch, or as they are numbered.
    pub shuffle: bool,
    /// Samples of a batch.
    pub batch: usize,
    /// What becomes of samples that do not divide evenly.
    pub tail: Tail,
    /// Which part of all samples this process has.
    pub shard: Shard,
}

impl Default for OrderConfig {
    /// All samples as they are numbered, one at a time.
    fn default() -> Self {
        Self {
            seed: 0,
            shuffle: false,
            batch: 1,
            tail: Tail::Keep,
            shard: Shard::whole(),
        }
    }
}
