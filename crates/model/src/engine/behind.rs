//! What the hand-over from one engine to another does to whoever comes next.

use super::Need;

/// What a point in a stream comes behind: for each kind of engine, when an operation could start
/// there at the earliest.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Behind {
    earliest_ns: [u64; Need::ALL.len()],
}

impl Behind {
    /// Behind nothing at all.
    pub const NOTHING: Self = Self {
        earliest_ns: [0; Need::ALL.len()],
    };

    /// Also behind an operation that ended on an engine of this kind. Others have to be handed
    /// over to, which takes `handover_ns`.
    pub fn operation(&mut self, kind: Need, end_ns: u64, handover_ns: u64) {
        let handed_over_ns = end_ns.saturating_add(handover_ns);
        for (index, earliest_ns) in self.earliest_ns.iter_mut().enumerate() {
            let from_ns = if index == kind.index() {
                end_ns
            } else {
                handed_over_ns
            };
            *earliest_ns = from_ns.max(*earliest_ns);
        }
    }

    /// Also behind another point.
    pub fn point(&mut self, other: &Self) {
        for (mine, theirs) in self.earliest_ns.iter_mut().zip(other.earliest_ns) {
            *mine = theirs.max(*mine);
        }
    }

    /// When an operation on an engine of this kind can start at the earliest.
    #[must_use]
    pub fn earliest_ns(&self, kind: Need) -> u64 {
        self.earliest_ns[kind.index()]
    }
}
