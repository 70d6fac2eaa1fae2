//! Who uses which range of a device buffer: the last writer and *all* readers since.

use super::{Extent, Fence};

/// Identifies a stream. Never reused, unlike a driver's handle.
pub(crate) type StreamId = u64;

/// One use of a range.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) stream: StreamId,
    pub(crate) extent: Extent,
    pub(crate) writes: bool,
}

/// All uses that a later one may have to wait for.
pub(crate) struct Ledger<F> {
    uses: Vec<Use<F>>,
    /// Number of uses at which finished ones are removed. Doubles while most are still running, so that
    /// each use is queried only a few times.
    tidy_at: usize,
}

struct Use<F> {
    access: Access,
    fence: F,
}

/// With fewer uses, a driver call does not pay off.
const TIDY_AT_LEAST: usize = 16;

impl<F: Fence + Clone> Ledger<F> {
    pub(crate) fn new() -> Self {
        Self {
            uses: Vec::new(),
            tidy_at: TIDY_AT_LEAST,
        }
    }

    /// Fences on other streams that must fire before `next` may start. Work on the same stream is already
    /// ordered.
    pub(crate) fn conflicts<'a>(&'a self, next: &'a Access) -> impl Iterator<Item = &'a F> {
        self.uses
            .iter()
            .filter(|earlier| earlier.access.stream != next.stream && clash(&earlier.access, next))
            .map(|earlier| &earlier.fence)
    }

    /// Records that `access` was submitted after its conflicts and ends with `fence`.
    pub(crate) fn record(&mut self, access: Access, fence: F) {
        self.uses
            .retain(|earlier| !replaces(&access, &earlier.access));
        if self.uses.len() >= self.tidy_at {
            self.uses.retain(|earlier| !earlier.fence.has_let_go());
            self.tidy_at = TIDY_AT_LEAST.max(2 * self.uses.len());
        }
        self.uses.push(Use { access, fence });
    }

    /// Fences of all uses, in submission order.
    pub(crate) fn fences(&self) -> impl Iterator<Item = &F> {
        self.uses.iter().map(|earlier| &earlier.fence)
    }
}

/// Whether the order of the two matters.
fn clash(a: &Access, b: &Access) -> bool {
    (a.writes || b.writes) && a.extent.overlaps(&b.extent)
}

/// Whether any later work that waits for `later` need not wait for `earlier`.
///
/// `later` must cover the range, come after `earlier`, and clash with at least everything that `earlier`
/// clashes with. A reader never replaces a writer on another stream, nor a reader on another stream: that
/// would leave one reader where there are two.
fn replaces(later: &Access, earlier: &Access) -> bool {
    let covers = later.extent.covers(&earlier.extent);
    let comes_after = later.writes || later.stream == earlier.stream;
    let clashes_alike = later.writes || !earlier.writes;
    covers && comes_after && clashes_alike
}
