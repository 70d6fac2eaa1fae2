//! Time divided into cells.

use std::collections::BTreeSet;

use crate::timeline::rows::{Shade, Shading};
use crate::timeline::{Span, SpanKind};

/// What one cell shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeCell {
    /// The kind that fills most of it.
    Work(SpanKind, Shade),
    /// Nothing runs.
    Idle,
    /// The run is over.
    Over,
}

/// A time scale on which a cell is `cell` long and a nanosecond `count`, so that nothing is rounded.
#[derive(Clone, Copy)]
pub(super) struct TimeGrid {
    count: usize,
    cell: u128,
}

impl TimeGrid {
    /// `count` cells for `scale_ns`.
    pub(super) fn new(count: usize, scale_ns: u64) -> Self {
        Self {
            count,
            cell: u128::from(scale_ns.max(1)),
        }
    }

    /// The cell of a point in time.
    pub(super) fn cell_of(self, at_ns: u64) -> usize {
        let cell = usize::try_from(self.place(at_ns) / self.cell).unwrap_or(usize::MAX);
        cell.min(self.count - 1)
    }

    /// The cells of a track. Spans are in order of their start.
    pub(super) fn cells(self, spans: &[&Span], total_ns: u64) -> Vec<TimeCell> {
        let segments = segments(spans);
        let mut fills = vec![CellFill::default(); self.count];
        for segment in &segments {
            self.fill(&mut fills, segment);
        }
        let mut cells: Vec<TimeCell> = Vec::with_capacity(self.count);
        for (index, fill) in fills.iter().enumerate() {
            let winner = fill.winner(self.cell, cells.last());
            cells.push(winner.unwrap_or_else(|| self.empty(index, total_ns)));
        }
        // A span too short to fill half a cell is shown if it hides nothing.
        for segment in &segments {
            let middle_ns = segment.start_ns.midpoint(segment.end_ns);
            let cell = &mut cells[self.cell_of(middle_ns)];
            if !matches!(cell, TimeCell::Work(..)) {
                *cell = TimeCell::Work(segment.kind, segment.shade);
            }
        }
        cells
    }

    fn place(self, at_ns: u64) -> u128 {
        u128::from(at_ns) * self.count as u128
    }

    fn empty(self, index: usize, total_ns: u64) -> TimeCell {
        let twice_middle = (2 * index as u128 + 1) * self.cell;
        match twice_middle > 2 * self.place(total_ns) {
            true => TimeCell::Over,
            false => TimeCell::Idle,
        }
    }

    fn fill(self, fills: &mut [CellFill], segment: &SpanSegment) {
        let (start, end) = (self.place(segment.start_ns), self.place(segment.end_ns));
        let first = self.cell_of(segment.start_ns);
        for (index, fill) in fills.iter_mut().enumerate().skip(first) {
            let cell_start = index as u128 * self.cell;
            if cell_start >= end {
                break;
            }
            let part = end.min(cell_start + self.cell) - start.max(cell_start);
            fill.0[segment.kind as usize][segment.shade as usize] += part;
        }
    }
}

/// How much of a cell each kind and shade fills.
#[derive(Clone, Default)]
struct CellFill([[u128; 2]; SpanKind::ALL.len()]);

impl CellFill {
    /// What to show after the cell `last`, if at least half of the cell is filled.
    fn winner(&self, cell: u128, last: Option<&TimeCell>) -> Option<TimeCell> {
        let filled = |kind: SpanKind| self.0[kind as usize].iter().sum::<u128>();
        let all: u128 = SpanKind::ALL.into_iter().map(filled).sum();
        if 2 * all < cell {
            return None;
        }
        let kind = SpanKind::ALL.into_iter().max_by_key(|kind| filled(*kind))?;
        let [strong, soft] = self.0[kind as usize];
        let own = Shade::ALL[usize::from(soft > strong)];
        let shade = match last {
            // A cell of two chunks differs from the previous one, so that chunks about as short as a
            // cell alternate and do not look like a few long ones.
            Some(TimeCell::Work(before, shade))
                if *before == kind && 4 * soft.min(strong) >= cell =>
            {
                shade.other()
            }
            _ => own,
        };
        Some(TimeCell::Work(kind, shade))
    }
}

/// A time in which one span is visible.
struct SpanSegment {
    kind: SpanKind,
    shade: Shade,
    start_ns: u64,
    end_ns: u64,
}

/// The spans without overlaps: at any time, the one that started last.
fn segments(spans: &[&Span]) -> Vec<SpanSegment> {
    let mut shading = Shading::default();
    let shades: Vec<Shade> = spans.iter().map(|span| shading.next(span)).collect();
    // At the same time, ends come before starts, except for spans without length.
    let mut edges: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * spans.len());
    for (index, span) in spans.iter().enumerate() {
        edges.push((span.start_ns, true, index));
        edges.push((span.end_ns, span.end_ns == span.start_ns, index));
    }
    edges.sort_unstable();

    let segment = |index: usize, start_ns: u64, end_ns: u64| SpanSegment {
        kind: spans[index].kind,
        shade: shades[index],
        start_ns,
        end_ns,
    };
    let mut segments: Vec<SpanSegment> = Vec::new();
    let mut running: BTreeSet<usize> = BTreeSet::new();
    let mut since_ns = 0;
    for (at_ns, _, index) in edges {
        let span = spans[index];
        let shown = running.last().copied();
        let starts = running.insert(index);
        if let Some(shown) = shown.filter(|_| at_ns > since_ns) {
            segments.push(segment(shown, since_ns, at_ns));
        }
        if !starts {
            running.remove(&index);
            if span.start_ns == span.end_ns {
                segments.push(segment(index, at_ns, at_ns));
            }
        }
        since_ns = at_ns;
    }
    segments
}

#[cfg(test)]
mod tests {
    use SpanKind::{Kernel, Wait};

    use super::*;
    use crate::timeline::Track;

    /// The cells of spans, as letters: kind, start, end and chunk.
    fn letters(spans: &[(SpanKind, u64, u64, Option<u64>)], total_ns: u64) -> String {
        let span = |&(kind, start_ns, end_ns, chunk)| Span {
            chunk,
            ..Span::new(Track::Host, kind, start_ns, end_ns)
        };
        let spans: Vec<Span> = spans.iter().map(span).collect();
        let spans: Vec<&Span> = spans.iter().collect();
        let letter = |cell| match cell {
            TimeCell::Work(Kernel, Shade::Strong) => 'K',
            TimeCell::Work(Kernel, Shade::Soft) => 'k',
            TimeCell::Work(..) => 'W',
            TimeCell::Idle => '.',
            TimeCell::Over => ' ',
        };
        let cells = TimeGrid::new(10, 100).cells(&spans, total_ns);
        cells.into_iter().map(letter).collect()
    }

    #[test]
    fn a_cell_shows_what_fills_most_of_it() {
        let (first, wait, last) = (
            (Kernel, 0, 14, None),
            (Wait, 14, 30, None),
            (Kernel, 55, 75, None),
        );
        assert_eq!(letters(&[first, wait, last], 80), "KWW..KKK  ");
    }

    #[test]
    fn short_spans_are_not_lost() {
        let (kernel, wait, last) = (
            (Kernel, 12, 13, None),
            (Wait, 50, 50, None),
            (Wait, 100, 100, None),
        );
        assert_eq!(letters(&[kernel, wait, last], 100), ".K...W...W");
    }

    #[test]
    fn chunks_shorter_than_a_cell_alternate() {
        let spans: Vec<_> = (0..16)
            .map(|chunk| (Kernel, chunk * 6, chunk * 6 + 6, Some(chunk)))
            .collect();
        assert_eq!(letters(&spans, 100), "KkKkKkKkKk");
    }

    #[test]
    fn the_later_of_two_spans_is_shown() {
        let inside = [(Kernel, 0, 100, None), (Wait, 20, 40, None)];
        assert_eq!(letters(&inside, 100), "KKWWKKKKKK");
        let overlapping = [(Kernel, 0, 60, None), (Kernel, 30, 100, None)];
        assert_eq!(letters(&overlapping, 100), "KKKkkkkkkk");
    }
}
