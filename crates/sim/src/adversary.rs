//! The choices that the stream rules leave open, made by a seed.
//!
//! A seeded run has no engines: every operation may run as soon as its stream allows it, takes
//! any time, and touches memory at any moment in between. So any order that a real device could
//! produce can come up, and many that it would produce once in a year.

use crate::op::Moment;
use crate::rng::Rng;

/// Longest time that an operation is made to take, unless its model says longer.
const LONGEST_NS: u64 = 50_000_000;

/// Makes the open choices.
pub(crate) struct Adversary {
    rng: Rng,
}

impl Adversary {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed, 1),
        }
    }

    /// How long an operation takes that the model gives `model_ns`.
    pub(crate) fn duration_ns(&mut self, model_ns: u64) -> u64 {
        match self.rng.below(6) {
            0 => 0,
            1 => model_ns,
            2 => self.rng.below(model_ns.saturating_add(1)),
            3 => model_ns.saturating_add(self.rng.below(1_000)),
            4 => model_ns.saturating_add(self.rng.below(100_000)),
            _ => model_ns.saturating_add(self.rng.below(LONGEST_NS)),
        }
    }

    /// How long after its predecessor an event fires, or stream-ordered memory changes hands.
    pub(crate) fn lag_ns(&mut self) -> u64 {
        if self.rng.one_in(4) {
            self.rng.below(100_000)
        } else {
            0
        }
    }

    /// When an operation touches memory.
    pub(crate) fn moment(&mut self) -> Moment {
        match self.rng.below(3) {
            0 => Moment::Start,
            1 => Moment::Middle,
            _ => Moment::End,
        }
    }

    /// The middle of a running operation.
    pub(crate) fn middle_ns(&mut self, start_ns: u64, end_ns: u64) -> u64 {
        start_ns + self.rng.below(end_ns - start_ns + 1)
    }

    /// Where a copy breaks into two pieces that move at moments of their own; 0 if it does not.
    pub(crate) fn split(&mut self, bytes: usize) -> usize {
        if bytes < 2 || self.rng.one_in(2) {
            return 0;
        }
        1 + self.rng.below(bytes as u64 - 1) as usize
    }

    /// How long the host thread is kept from running before a call.
    pub(crate) fn pause_ns(&mut self) -> u64 {
        match self.rng.below(8) {
            0 => self.rng.below(1_000),
            1 => self.rng.below(200_000),
            _ => 0,
        }
    }

    /// Whether something completes although nobody waits for it.
    pub(crate) fn nudges(&mut self) -> bool {
        self.rng.one_in(4)
    }
}
