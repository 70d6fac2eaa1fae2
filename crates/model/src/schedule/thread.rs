//! One host thread.

use super::program::Step;
use super::queue::OpId;
use crate::Profile;

/// A thread between two steps, or within one that waits.
#[derive(Clone, Copy)]
pub(super) struct Thread {
    /// Number of its step.
    pub(super) step: usize,
    /// When that step began.
    pub(super) since_ns: u64,
    pub(super) state: State,
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its step takes effect at this time.
    Acting(u64),
    /// Waits for an operation of a stream.
    ForOperation(OpId, u32),
    /// Waits for the lanes.
    ForLanes(OpId, u32),
    /// Waits for a post.
    ForPost(u32),
    Done,
}

impl Thread {
    /// Begins its step, if there is one.
    pub(super) fn begin(&mut self, profile: &Profile, steps: &[Step], now_ns: u64) {
        self.since_ns = now_ns;
        self.state = match steps.get(self.step) {
            Some(step) => State::Acting(now_ns.saturating_add(step.action.cost_ns(profile))),
            None => State::Done,
        };
    }
}
