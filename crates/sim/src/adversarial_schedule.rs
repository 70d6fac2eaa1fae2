//! A schedule chosen by a seed, among all that the stream rules allow.
//!
//! A seeded run has no engines: an operation may start as soon as its stream allows it, takes any
//! time, and accesses memory at any moment in between. So every order that a real device could
//! produce can occur, including those that it produces once a year.

use crate::operation::Moment;
use crate::rng::Rng;

/// Longest delay of an operation beyond its modelled duration.
const LONGEST_NS: u64 = 50_000_000;

/// Makes the choices that the rules leave open.
pub(crate) struct Adversary {
    rng: Rng,
}

impl Adversary {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed, 1),
        }
    }

    /// Duration of an operation with the modelled duration `model_ns`.
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

    /// Delay of an event or a stream-ordered allocation or free.
    pub(crate) fn lag_ns(&mut self) -> u64 {
        if self.rng.one_in(4) {
            self.rng.below(100_000)
        } else {
            0
        }
    }

    /// When an operation accesses memory.
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

    /// Where to split a copy into two pieces that move at different moments; 0 for no split.
    pub(crate) fn split(&mut self, bytes: usize) -> usize {
        if bytes < 2 || self.rng.one_in(2) {
            return 0;
        }
        1 + self.rng.below(bytes as u64 - 1) as usize
    }

    /// How long the host thread is preempted before a call.
    pub(crate) fn pause_ns(&mut self) -> u64 {
        match self.rng.below(8) {
            0 => self.rng.below(1_000),
            1 => self.rng.below(200_000),
            _ => 0,
        }
    }

    /// Whether the next event happens although no call waits for it.
    pub(crate) fn steps(&mut self) -> bool {
        self.rng.one_in(4)
    }
}
