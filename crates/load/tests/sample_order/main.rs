//! Orders of samples: complete, stable over time, and well shuffled.

mod batch_counts_and_padding;
mod epoch_state;
mod every_sample_once;
mod golden;
mod resumed_with_other_ranks;
mod shard;
mod shuffle;
