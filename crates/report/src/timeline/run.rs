//! One run of a job.

use serde::Serialize;
use thiserror::Error;

use super::{Span, Track};

/// Why spans are not a timeline.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// A span ends before it begins.
    #[error(
        "span {index} (`{label}`) starts at {start_ns} ns and ends before that, at {end_ns} ns"
    )]
    Backwards {
        /// Its place in the list that was given.
        index: usize,
        /// Its label.
        label: String,
        /// Its start.
        start_ns: u64,
        /// Its end.
        end_ns: u64,
    },
    /// A span ends after the run.
    #[error("span {index} (`{label}`) ends at {end_ns} ns, after the run's {total_ns} ns")]
    PastTheEnd {
        /// Its place in the list that was given.
        index: usize,
        /// Its label.
        label: String,
        /// Its end.
        end_ns: u64,
        /// The run's time.
        total_ns: u64,
    },
}

/// One run: its spans, each of which ends neither before it begins nor after the run.
///
/// Spans of one track may overlap, as two small kernels do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Timeline {
    name: String,
    total_ns: u64,
    spans: Vec<Span>,
}

impl Timeline {
    /// A run of `total_ns` with these spans, which may come in any order.
    ///
    /// # Errors
    ///
    /// The first span that ends before it begins, or after the run.
    pub fn new(
        name: impl Into<String>,
        total_ns: u64,
        mut spans: Vec<Span>,
    ) -> Result<Self, TimelineError> {
        for (index, span) in spans.iter().enumerate() {
            check(index, span, total_ns)?;
        }
        // The longer first, so that a span within another one is the later of the two.
        spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns), span.track));
        Ok(Self {
            name: name.into(),
            total_ns,
            spans,
        })
    }

    /// What the run is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long the run took.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The spans by their start.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The tracks that have spans, each once, in the order of [`Track`].
    #[must_use]
    pub fn tracks(&self) -> Vec<Track> {
        let mut tracks: Vec<Track> = self.spans.iter().map(|span| span.track).collect();
        tracks.sort_unstable();
        tracks.dedup();
        tracks
    }
}

fn check(index: usize, span: &Span, total_ns: u64) -> Result<(), TimelineError> {
    let Span {
        start_ns, end_ns, ..
    } = *span;
    if end_ns < start_ns {
        return Err(TimelineError::Backwards {
            index,
            label: span.label.clone(),
            start_ns,
            end_ns,
        });
    }
    if end_ns > total_ns {
        return Err(TimelineError::PastTheEnd {
            index,
            label: span.label.clone(),
            end_ns,
            total_ns,
        });
    }
    Ok(())
}
