//! Which span is drawn where: a row a track, cut into sub-rows where spans overlap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::shade::{Shade, Shading};
use crate::timeline::track::TrackName;
use crate::timeline::{Span, Timeline, Track};

/// A track with what runs on it.
pub(crate) struct Row<'a> {
    pub(crate) track: Track,
    pub(crate) name: TrackName,
    /// The spans by their start; no two of a sub-row overlap. At least one sub-row.
    pub(crate) lanes: Vec<Vec<Placed<'a>>>,
}

/// A span with its shade.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) span: &'a Span,
    pub(crate) shade: Shade,
}

/// The rows of a run, from top to bottom.
pub(crate) fn rows(timeline: &Timeline) -> Vec<Row<'_>> {
    let by_track = by_track(timeline);
    let tracks: Vec<Track> = by_track.keys().copied().collect();
    by_track
        .into_iter()
        .zip(Track::names(&tracks))
        .map(|((track, spans), name)| Row {
            track,
            name,
            lanes: lanes(&spans),
        })
        .collect()
}

/// The spans of each track by their start.
pub(crate) fn by_track(timeline: &Timeline) -> BTreeMap<Track, Vec<&Span>> {
    let mut by_track: BTreeMap<Track, Vec<&Span>> = BTreeMap::new();
    for span in timeline.spans() {
        by_track.entry(span.track).or_default().push(span);
    }
    by_track
}

/// Each span goes into the first sub-row that is free when it starts.
fn lanes<'a>(spans: &[&'a Span]) -> Vec<Vec<Placed<'a>>> {
    let mut lanes: Vec<(Vec<Placed<'a>>, Shading<'a>)> = Vec::new();
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
        let (placed, shading) = &mut lanes[lane];
        let shade = shading.next(span);
        placed.push(Placed { span, shade });
        taken.push(Reverse((drawn_end_ns(span), lane)));
    }
    lanes.into_iter().map(|(placed, _)| placed).collect()
}

/// A span without length is drawn too, so that it needs a place of its own.
fn drawn_end_ns(span: &Span) -> u128 {
    u128::from(span.end_ns).max(u128::from(span.start_ns) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::SpanKind;

    fn lanes_of(times: &[(u64, u64)]) -> Vec<Vec<(u64, u64)>> {
        let spans = times
            .iter()
            .map(|(start, end)| Span::new(Track::Host, SpanKind::HostWork, *start, *end))
            .collect();
        let run = Timeline::new("", u64::MAX, spans).expect("in order");
        let rows = rows(&run);
        let times = |lane: &Vec<Placed<'_>>| {
            lane.iter()
                .map(|placed| (placed.span.start_ns, placed.span.end_ns))
                .collect()
        };
        rows[0].lanes.iter().map(times).collect()
    }

    #[test]
    fn spans_that_touch_share_a_sub_row_and_spans_that_overlap_do_not() {
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
}
