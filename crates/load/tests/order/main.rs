//! Orders of samples: every sample where it belongs, the same for ever, and as shuffled as can be.

mod coverage;
mod golden;
mod shapes;
mod shard;
mod shuffle;
mod state;
