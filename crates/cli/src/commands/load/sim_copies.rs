//! What the copies of a load take on a simulated device.

use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::LoadCopies;
use pinlane_sim::{Sim, SpanKind};

/// A simulated machine and its profile.
pub(super) struct Simulated<'a> {
    sim: &'a Sim,
    profile: Profile,
}

impl<'a> Simulated<'a> {
    pub(super) fn new(sim: &'a Sim, profile: Profile) -> Self {
        Self { sim, profile }
    }

    /// How many things have run on it.
    pub(super) fn ran(&self) -> usize {
        self.sim.timeline().len()
    }

    /// The copies behind the first so many things that ran, each with what it takes alone. On the
    /// clock they take longer by what an engine needs to turn from one stream to another, which
    /// depends on how the threads of this machine took turns.
    pub(super) fn copies_since(&self, ran: usize) -> LoadCopies {
        let timeline = self.sim.timeline();
        let mut copies = LoadCopies {
            count: 0,
            bytes: 0,
            ns: 0,
        };
        for span in timeline.get(ran..).unwrap_or(&[]) {
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
