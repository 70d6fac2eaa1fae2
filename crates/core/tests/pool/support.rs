//! What these tests share.

use std::time::Duration;

use pinlane::{Budget, Device};
use pinlane_sim::Sim;

pub const SLAB_BYTES: u64 = 2 << 20;

/// How long to wait for what comes: a test that is broken fails rather than hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn with_limit(sim: &Sim, bytes: u64) -> (Device, Budget) {
    let budget = Budget::with_limit(bytes);
    (Device::with_budget(sim.driver(), &budget), budget)
}
