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

/// Numbers that a seed decides (SplitMix64).
pub struct Choice(pub u64);

impl Choice {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}
