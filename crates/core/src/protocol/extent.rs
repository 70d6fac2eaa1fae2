//! The byte ranges of a device buffer that a use covers.

use std::ops::Range;
use std::sync::Arc;

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

    /// Whether the two share a byte.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = self.few_and_many(other);
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

    fn few_and_many<'a>(&'a self, other: &'a Self) -> (&'a [Range<usize>], &'a [Range<usize>]) {
        let (a, b) = (self.ranges(), other.ranges());
        if a.len() <= b.len() { (a, b) } else { (b, a) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Lists every byte of an extent.
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
