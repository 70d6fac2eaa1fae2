//! The copies of a load on a simulated device.

use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::LoadCopies;
use pinlane_sim::{Sim, SpanKind};

/// A simulated machine and its profile.
#[derive(Clone, Copy)]
pub(super) struct SimCopies<'a> {
    pub(super) sim: &'a Sim,
    pub(super) profile: &'a Profile,
}

impl SimCopies<'_> {
    /// The current length of the simulator's timeline.
    pub(super) fn position(&self) -> usize {
        self.sim.timeline().len()
    }

    /// The copies after a position of the timeline, each with the time that it takes alone. The clock also
    /// counts switches between streams, which depend on how this machine scheduled the threads.
    pub(super) fn since(&self, position: usize) -> LoadCopies {
        let timeline = self.sim.timeline();
        let mut copies = LoadCopies {
            count: 0,
            bytes: 0,
            ns: 0,
        };
        for span in timeline.get(position..).unwrap_or(&[]) {
            if span.kind == SpanKind::HostToDevice {
                let (up, pinned) = (Direction::HostToDevice, HostKind::Pinned);
                let ns = self.profile.copy_ns(up, pinned, span.bytes);
                copies.count += 1;
                copies.bytes += span.bytes;
                copies.ns = copies.ns.saturating_add(ns);
            }
        }
        copies
    }
}
