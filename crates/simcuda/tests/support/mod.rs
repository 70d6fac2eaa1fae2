//! Shared by the tests.

#![allow(dead_code, unused_imports)] // every test binary uses a part of this

pub mod api;

use pinlane_simcuda::testing::Stage;
pub use pinlane_simcuda::testing::{complaints, in_child};

/// A folder with the complete library.
pub fn whole() -> Stage {
    Stage::new().expect("the library is built beside the test")
}
