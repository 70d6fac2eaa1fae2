//! What the tests of several crates share: simulated devices, test data, drivers that fail on request, and
//! how much a test runs.

mod data;
mod example;
mod express;
mod run_seeds;
mod sim;
mod slow_tests;
mod trap;

pub use data::*;
pub use example::*;
pub use express::*;
pub use pinlane::model::SplitMix64;
pub use run_seeds::*;
pub use sim::*;
pub use slow_tests::*;
pub use trap::*;
