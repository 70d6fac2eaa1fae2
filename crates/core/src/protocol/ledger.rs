//! Who uses which range of a device buffer: the last writer and *all* readers since.

use super::{Extent, Fence};

/// Names a stream for its whole life. Never reused, unlike a driver's handle.
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
    /// Number of uses at which those that are done are looked for and forgotten. Doubles when most
    /// are still running, so that a use is asked about a few times only.
    tidy_at: usize,
}

struct Use<F> {
    access: Access,
    fence: F,
}

/// Fewer uses than this are not worth a question to the driver.
const TIDY_AT_LEAST: usize = 16;

impl<F: Fence + Clone> Ledger<F> {
    pub(crate) fn new() -> Self {
        Self {
            uses: Vec::new(),
            tidy_at: TIDY_AT_LEAST,
        }
    }

    /// Fences of other streams that must fire before `next` may start. Work of the same stream is
    /// in order by itself.
    pub(crate) fn conflicts<'a>(&'a self, next: &'a Access) -> impl Iterator<Item = &'a F> {
        self.uses
            .iter()
            .filter(|earlier| earlier.access.stream != next.stream && clash(&earlier.access, next))
            .map(|earlier| &earlier.fence)
    }

    /// Note that `access` was submitted after its conflicts, and ends with `fence`.
    pub(crate) fn record(&mut self, access: Access, fence: F) {
        self.uses
            .retain(|earlier| !replaces(&access, &earlier.access));
        if self.uses.len() >= self.tidy_at {
            self.uses.retain(|earlier| !earlier.fence.has_let_go());
            self.tidy_at = TIDY_AT_LEAST.max(2 * self.uses.len());
        }
        self.uses.push(Use { access, fence });
    }

    /// Fences of all uses, in the order of submission.
    pub(crate) fn fences(&self) -> impl Iterator<Item = &F> {
        self.uses.iter().map(|earlier| &earlier.fence)
    }
}

/// Whether the order of the two matters.
fn clash(a: &Access, b: &Access) -> bool {
    (a.writes || b.writes) && a.extent.overlaps(&b.extent)
}

/// Whether waiting for `later` includes having waited for `earlier`, for whatever may follow.
///
/// `later` must cover the range, come after `earlier`, and clash with at least what `earlier`
/// clashes with. A reader never stands for a writer of another stream, nor for another stream's
/// reader: that would leave one reader where there are two.
fn replaces(later: &Access, earlier: &Access) -> bool {
    let covers = later.extent.covers(&earlier.extent);
    let comes_after = later.writes || later.stream == earlier.stream;
    let clashes_alike = later.writes || !earlier.writes;
    covers && comes_after && clashes_alike
}
