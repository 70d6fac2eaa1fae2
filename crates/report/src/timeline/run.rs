//! One run of a job, and how busy it keeps its tracks.

use serde::Serialize;
use thiserror::Error;

use super::{Span, SpanKind, Track};

/// Why spans do not form a timeline.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// A span ends before it starts.
    #[error("span {index} (`{label}`) ends at {end_ns} ns, before its start at {start_ns} ns")]
    Backwards {
        /// Its index in the given list.
        index: usize,
        /// Its label.
        label: String,
        /// Its start.
        start_ns: u64,
        /// Its end.
        end_ns: u64,
    },
    /// A span ends after the run.
    #[error(
        "span {index} (`{label}`) ends at {end_ns} ns, after the end of the run at {total_ns} ns"
    )]
    PastTheEnd {
        /// Its index in the given list.
        index: usize,
        /// Its label.
        label: String,
        /// Its end.
        end_ns: u64,
        /// Duration of the run.
        total_ns: u64,
    },
}

/// A time in which a track was idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// One run. No span ends before it starts, or after the run.
///
/// Spans of one track may overlap, as small kernels do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Timeline {
    name: String,
    total_ns: u64,
    spans: Vec<Span>,
}

impl Timeline {
    /// A run of `total_ns` with these spans, in any order.
    ///
    /// # Errors
    ///
    /// The first span that ends before it starts, or after the run.
    pub fn new(
        name: impl Into<String>,
        total_ns: u64,
        mut spans: Vec<Span>,
    ) -> Result<Self, TimelineError> {
        for (index, span) in spans.iter().enumerate() {
            check(index, span, total_ns)?;
        }
        // The longer one first, so that a nested span comes after the one around it.
        spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns), span.track));
        Ok(Self {
            name: name.into(),
            total_ns,
            spans,
        })
    }

    /// Name of the run.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Duration of the run.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The spans in order of their start.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The tracks that have spans, in the order of [`Track`].
    #[must_use]
    pub fn tracks(&self) -> Vec<Track> {
        let mut tracks: Vec<Track> = self.spans.iter().map(|span| span.track).collect();
        tracks.sort_unstable();
        tracks.dedup();
        tracks
    }

    /// How long a track was busy. Overlapping spans count once; waiting does not count.
    #[must_use]
    pub fn busy_ns(&self, track: Track) -> u64 {
        let times = self.busy_times(track).into_iter();
        times.map(|(start_ns, end_ns)| end_ns - start_ns).sum()
    }

    /// Share of the run in which a track was busy, from 0 to 1.
    #[must_use]
    pub fn busy_share(&self, track: Track) -> f64 {
        // Without time, nothing was busy.
        self.busy_ns(track) as f64 / self.total_ns.max(1) as f64
    }

    /// When a track was idle, from the start of the run to its end.
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

    /// Start and end of each busy time; these neither overlap nor touch.
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

fn check(index: usize, span: &Span, total_ns: u64) -> Result<(), TimelineError> {
    let (start_ns, end_ns, label) = (span.start_ns, span.end_ns, span.label.clone());
    if end_ns < start_ns {
        Err(TimelineError::Backwards {
            index,
            label,
            start_ns,
            end_ns,
        })
    } else if end_ns > total_ns {
        Err(TimelineError::PastTheEnd {
            index,
            label,
            end_ns,
            total_ns,
        })
    } else {
        Ok(())
    }
}
