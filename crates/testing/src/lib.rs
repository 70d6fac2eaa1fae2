//! What the tests of several crates share: simulated devices, test data, drivers that fail on request, and
//! how much a test runs.

mod data;
mod failing_driver;
mod run_example;
mod run_seeds;
mod sim;
mod slow_tests;
mod small_express_ring;

pub use data::*;
pub use failing_driver::*;
pub use pinlane::model::SplitMix64;
pub use run_example::*;
pub use run_seeds::*;
pub use sim::*;
pub use slow_tests::*;
pub use small_express_ring::*;
