//! How well a run uses its tracks.

use serde::Serialize;

use super::{SpanKind, Timeline, Track};

/// A time in which a track did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Timeline {
    /// How long the track was busy. Spans that overlap count once, waiting does not count.
    #[must_use]
    pub fn busy_ns(&self, track: Track) -> u64 {
        self.busy_times(track)
            .iter()
            .map(|(start_ns, end_ns)| end_ns - start_ns)
            .sum()
    }

    /// The part of the run in which the track was busy, 0 to 1. A run without time has none.
    #[must_use]
    pub fn busy_share(&self, track: Track) -> f64 {
        if self.total_ns() == 0 {
            return 0.0;
        }
        self.busy_ns(track) as f64 / self.total_ns() as f64
    }

    /// When the track was not busy, from the start of the run to its end.
    #[must_use]
    pub fn gaps(&self, track: Track) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut idle_since_ns = 0;
        let end_of_run = (self.total_ns(), self.total_ns());
        for (start_ns, end_ns) in self.busy_times(track).into_iter().chain([end_of_run]) {
            if start_ns > idle_since_ns {
                gaps.push(Gap {
                    start_ns: idle_since_ns,
                    end_ns: start_ns,
                });
            }
            idle_since_ns = end_ns;
        }
        gaps
    }

    /// Start and end of each time in which the track was busy; they neither overlap nor touch.
    fn busy_times(&self, track: Track) -> Vec<(u64, u64)> {
        let mut times: Vec<(u64, u64)> = Vec::new();
        let work = self.spans().iter().filter(|span| {
            span.track == track && span.kind != SpanKind::Wait && span.end_ns > span.start_ns
        });
        for span in work {
            match times.last_mut() {
                Some((_, end_ns)) if span.start_ns <= *end_ns => {
                    *end_ns = (*end_ns).max(span.end_ns);
                }
                _ => times.push((span.start_ns, span.end_ns)),
            }
        }
        times
    }
}
