//! Orders of samples: complete, stable over time, and well shuffled.

mod coverage;
mod golden;
mod other_ranks;
mod shapes;
mod shard;
mod shuffle;
mod state;
