//! Where spans are drawn: one row per track, split into lanes where spans overlap, in alternating
//! shades that show where a chunk ends and the next begins.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::{Span, Timeline, Track, TrackName};

pub(crate) struct TrackRow<'a> {
    pub(crate) track: Track,
    pub(crate) name: TrackName,
    /// Spans in order of their start; none of a lane overlap. At least one lane.
    pub(crate) lanes: Vec<Vec<ShadedSpan<'a>>>,
}

#[derive(Clone, Copy)]
pub(crate) struct ShadedSpan<'a> {
    pub(crate) span: &'a Span,
    pub(crate) shade: Shade,
}

pub(crate) fn rows(timeline: &Timeline) -> Vec<TrackRow<'_>> {
    let by_track = by_track(timeline);
    let tracks: Vec<Track> = by_track.keys().copied().collect();
    by_track
        .into_iter()
        .zip(Track::names(&tracks))
        .map(|((track, spans), name)| TrackRow {
            track,
            name,
            lanes: lanes(&spans),
        })
        .collect()
}

/// The spans of each track, in order of their start.
pub(crate) fn by_track(timeline: &Timeline) -> BTreeMap<Track, Vec<&Span>> {
    let mut by_track: BTreeMap<Track, Vec<&Span>> = BTreeMap::new();
    for span in timeline.spans() {
        by_track.entry(span.track).or_default().push(span);
    }
    by_track
}

/// Puts each span into the first lane that is free when it starts.
fn lanes<'a>(spans: &[&'a Span]) -> Vec<Vec<ShadedSpan<'a>>> {
    let mut lanes: Vec<(Vec<ShadedSpan<'a>>, Shading<'a>)> = Vec::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    let mut taken: BinaryHeap<Reverse<(u128, usize)>> = BinaryHeap::new();
    for span in spans {
        while let Some(Reverse((end_ns, lane))) = taken.peek().copied() {
            if end_ns > u128::from(span.start_ns) {
                break;
            }
            taken.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Default::default());
        }
        let (shaded, shading) = &mut lanes[lane];
        let shade = shading.next(span);
        shaded.push(ShadedSpan { span, shade });
        taken.push(Reverse((drawn_end_ns(span), lane)));
    }
    lanes.into_iter().map(|(shaded, _)| shaded).collect()
}

/// A span of no length is drawn too and occupies its lane.
fn drawn_end_ns(span: &Span) -> u128 {
    u128::from(span.end_ns).max(u128::from(span.start_ns) + 1)
}

/// One of the two shades of a kind's colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Shade {
    #[default]
    Strong,
    Soft,
}

impl Shade {
    pub(crate) const ALL: [Self; 2] = [Self::Strong, Self::Soft];

    pub(crate) fn other(self) -> Self {
        Self::ALL[1 - self as usize]
    }
}

/// Assigns shades to consecutive spans.
///
/// Even chunks are strong and odd ones soft, so that a chunk looks the same on each engine. If that
/// gives two neighbours of one kind the same shade, the second one changes.
#[derive(Default)]
pub(crate) struct Shading<'a> {
    last: Option<(&'a Span, Shade)>,
}

impl<'a> Shading<'a> {
    pub(crate) fn next(&mut self, span: &'a Span) -> Shade {
        let own = Shade::ALL[(span.chunk.unwrap_or(0) % 2) as usize];
        let shade = match self.last {
            Some((last, shade)) if last.kind == span.kind => {
                let same_chunk = span.chunk.is_some() && span.chunk == last.chunk;
                if same_chunk { shade } else { shade.other() }
            }
            _ => own,
        };
        self.last = Some((span, shade));
        shade
    }
}

#[cfg(test)]
mod tests {
    use super::Shade::{Soft, Strong};
    use super::*;
    use crate::timeline::SpanKind;

    fn lanes_of(times: &[(u64, u64)]) -> Vec<Vec<(u64, u64)>> {
        let span =
            |(start, end): &(u64, u64)| Span::new(Track::Host, SpanKind::HostWork, *start, *end);
        let run = Timeline::new("", u64::MAX, times.iter().map(span).collect()).expect("in order");
        let times = |shaded: &ShadedSpan<'_>| (shaded.span.start_ns, shaded.span.end_ns);
        let lanes = rows(&run).remove(0).lanes.into_iter();
        lanes.map(|lane| lane.iter().map(times).collect()).collect()
    }

    #[test]
    fn touching_spans_share_a_lane_and_overlapping_spans_do_not() {
        assert_eq!(lanes_of(&[(0, 5), (5, 9)]), [[(0, 5), (5, 9)]]);
        assert_eq!(
            lanes_of(&[(0, 5), (4, 9), (6, 8)]),
            [vec![(0, 5), (6, 8)], vec![(4, 9)]]
        );
    }

    #[test]
    fn spans_without_length_do_not_hide_each_other() {
        assert_eq!(lanes_of(&[(3, 3), (3, 3)]).len(), 2);
        assert_eq!(lanes_of(&[(0, 9), (3, 3)]).len(), 2);
        assert_eq!(lanes_of(&[(u64::MAX, u64::MAX); 2]).len(), 2);
    }

    fn shades(chunks: &[Option<u64>]) -> Vec<Shade> {
        let span = |chunk: &Option<u64>| Span {
            chunk: *chunk,
            ..Span::new(Track::Compute(0), SpanKind::Kernel, 0, 1)
        };
        let spans: Vec<Span> = chunks.iter().map(span).collect();
        let mut shading = Shading::default();
        spans.iter().map(|span| shading.next(span)).collect()
    }

    #[test]
    fn neighbours_differ_unless_they_share_a_chunk() {
        assert_eq!(shades(&[Some(0), Some(1), Some(2)]), [Strong, Soft, Strong]);
        assert_eq!(shades(&[Some(0), Some(2), Some(4)]), [Strong, Soft, Strong]);
        assert_eq!(shades(&[Some(1), Some(1), Some(2)]), [Soft, Soft, Strong]);
        assert_eq!(shades(&[None, None, None]), [Strong, Soft, Strong]);
    }
}
