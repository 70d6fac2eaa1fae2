//! Orders of samples: complete, stable over time, and well shuffled.

mod batch_counts_and_padding;
mod epoch_state;
mod every_sample_once;
mod golden;
mod shard;
mod shuffle;
