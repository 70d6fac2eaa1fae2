//! Who uses which range of a device buffer: the last writer and *all* readers since.

use std::ops::Range;
use std::sync::Arc;

use super::Fence;

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

/// One or more byte ranges.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    One(Range<usize>),
    /// Sorted, none empty, none adjacent to the next.
    Many(Arc<Vec<Range<usize>>>),
}

impl Extent {
    /// Merges ranges, which may overlap and come in any order.
    pub(crate) fn many(mut ranges: Vec<Range<usize>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        if !ranges.is_sorted_by_key(|range| range.start) {
            ranges.sort_unstable_by_key(|range| range.start);
        }
        ranges.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        match &mut ranges[..] {
            [] => Self::One(0..0),
            [one] => Self::One(one.clone()),
            _ => Self::Many(Arc::new(ranges)),
        }
    }

    fn ranges(&self) -> &[Range<usize>] {
        match self {
            Self::One(range) => std::slice::from_ref(range),
            Self::Many(ranges) => ranges,
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = match self.ranges().len() <= other.ranges().len() {
            true => (self.ranges(), other.ranges()),
            false => (other.ranges(), self.ranges()),
        };
        few.iter().any(|range| {
            let at = many.partition_point(|candidate| candidate.end <= range.start);
            many.get(at)
                .is_some_and(|found| found.start < range.end && !range.is_empty())
        })
    }

    /// Whether it includes every byte of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mine = self.ranges();
        other.ranges().iter().all(|range| {
            let at = mine.partition_point(|candidate| candidate.end < range.end);
            range.is_empty() || mine.get(at).is_some_and(|found| found.start <= range.start)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bytes(extent: &Extent) -> Vec<usize> {
        extent.ranges().iter().cloned().flatten().collect()
    }

    #[test]
    fn ranges_are_sorted_and_joined() {
        let extent = Extent::many(vec![10..12, 0..3, 5..5, 2..4, 12..13, 20..21]);
        assert_eq!(extent.ranges(), [0..4, 10..13, 20..21]);
        assert!(matches!(Extent::many(vec![1..2, 2..3]), Extent::One(range) if range == (1..3)));
        assert!(matches!(Extent::many(vec![]), Extent::One(range) if range.is_empty()));
    }

    #[test]
    fn overlap_and_cover_agree_with_sets_of_bytes() {
        let mut random = 12345u32;
        let mut below = move |limit: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((random >> 8) % limit) as usize
        };
        for _ in 0..if cfg!(miri) { 50 } else { 5000 } {
            let mut any = || {
                let ranges = (0..below(5)).map(|_| {
                    let start = below(20);
                    start..start + below(6)
                });
                Extent::many(ranges.collect())
            };
            let (a, b) = (any(), any());
            let (in_a, in_b) = (bytes(&a), bytes(&b));
            let overlap = in_a.iter().any(|byte| in_b.contains(byte));
            let cover = in_b.iter().all(|byte| in_a.contains(byte));
            assert_eq!(a.overlaps(&b), overlap, "{a:?} {b:?}");
            assert_eq!(a.covers(&b), cover, "{a:?} {b:?}");
        }
    }
}
