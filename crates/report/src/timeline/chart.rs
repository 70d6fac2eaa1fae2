//! Several runs on one time scale, and what shows them.

use std::io;

use serde::{Serialize, Serializer};

use super::{SpanKind, Timeline, Track};
use crate::Origin;
use crate::versioned_json::{SCHEMA_VERSION, pretty_json};

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

/// An output format of charts.
pub trait Exporter {
    /// Writes the whole chart.
    ///
    /// # Errors
    ///
    /// Only errors of `out`: every chart can be shown.
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()>;
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

    /// The chart as indented JSON, with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty_json(self)
    }
}

impl Serialize for Chart {
    /// The data, and for each run its speed-up and how busy its tracks were.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ChartJson<'a> {
            schema: u32,
            #[serde(flatten)]
            origin: &'a Origin,
            title: &'a str,
            timelines: Vec<TimelineJson<'a>>,
        }
        #[derive(Serialize)]
        struct TimelineJson<'a> {
            speedup: Option<f64>,
            tracks: Vec<TrackJson>,
            #[serde(flatten)]
            timeline: &'a Timeline,
        }
        #[derive(Serialize)]
        struct TrackJson {
            track: Track,
            name: String,
            busy_ns: u64,
            busy_share: f64,
        }
        let timelines = self.timelines.iter().map(|timeline| {
            let tracks = timeline.tracks().into_iter().map(|track| TrackJson {
                track,
                name: track.name(),
                busy_ns: timeline.busy_ns(track),
                busy_share: timeline.busy_share(track),
            });
            TimelineJson {
                speedup: self.speedup(timeline),
                tracks: tracks.collect(),
                timeline,
            }
        });
        let chart = ChartJson {
            schema: SCHEMA_VERSION,
            origin: &self.origin,
            title: &self.title,
            timelines: timelines.collect(),
        };
        chart.serialize(serializer)
    }
}
