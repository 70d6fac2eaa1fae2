//! What the tests of several crates share: simulated devices, test data, drivers that fail on request, and
//! how much a test runs.

mod data;
mod example;
mod express;
mod full;
mod seeds;
mod sim;
mod trap;

pub use data::*;
pub use example::*;
pub use express::*;
pub use full::*;
pub use pinlane::model::SplitMix64;
pub use seeds::*;
pub use sim::*;
pub use trap::*;
