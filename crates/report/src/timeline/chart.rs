//! Several runs on one time scale.

use super::{SpanKind, Timeline};
use crate::Origin;

/// Runs of one job, shown below each other on one time scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// The device.
    pub origin: Origin,
    /// The runs. The first one is the baseline of the speed-ups.
    pub timelines: Vec<Timeline>,
}

impl Chart {
    /// A chart of these runs.
    #[must_use]
    pub fn new(title: impl Into<String>, origin: Origin, timelines: Vec<Timeline>) -> Self {
        Self {
            title: title.into(),
            origin,
            timelines,
        }
    }

    /// How many times faster a run is than the first one. `None` if either took no time.
    #[must_use]
    pub fn speedup(&self, timeline: &Timeline) -> Option<f64> {
        let first_ns = self.timelines.first()?.total_ns();
        let this_ns = timeline.total_ns();
        (first_ns > 0 && this_ns > 0).then(|| first_ns as f64 / this_ns as f64)
    }

    /// Duration of the longest run: the length of the time scale.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        let totals_ns = self.timelines.iter().map(Timeline::total_ns);
        totals_ns.max().unwrap_or(0)
    }

    /// The kinds of span that occur, in the order of [`SpanKind::ALL`].
    #[must_use]
    pub fn kinds(&self) -> Vec<SpanKind> {
        let occurs = |kind: &SpanKind| {
            let mut spans = self.timelines.iter().flat_map(Timeline::spans);
            spans.any(|span| span.kind == *kind)
        };
        SpanKind::ALL.into_iter().filter(occurs).collect()
    }
}
