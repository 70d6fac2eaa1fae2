//! A chart as JSON: its data, and the figures that follow from it.

use serde::{Serialize, Serializer};

use super::{Chart, Timeline, Track};
use crate::{Origin, SCHEMA_VERSION};

#[derive(Serialize)]
struct ChartView<'a> {
    schema: u32,
    #[serde(flatten)]
    origin: &'a Origin,
    title: &'a str,
    timelines: Vec<TimelineView<'a>>,
}

#[derive(Serialize)]
struct TimelineView<'a> {
    speedup: Option<f64>,
    tracks: Vec<TrackView>,
    #[serde(flatten)]
    timeline: &'a Timeline,
}

#[derive(Serialize)]
struct TrackView {
    track: Track,
    name: String,
    busy_ns: u64,
    busy_share: f64,
}

impl Serialize for Chart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let timelines = self
            .timelines
            .iter()
            .map(|timeline| TimelineView {
                speedup: self.speedup(timeline),
                tracks: tracks(timeline),
                timeline,
            })
            .collect();
        ChartView {
            schema: SCHEMA_VERSION,
            origin: &self.origin,
            title: &self.title,
            timelines,
        }
        .serialize(serializer)
    }
}

fn tracks(timeline: &Timeline) -> Vec<TrackView> {
    timeline
        .tracks()
        .into_iter()
        .map(|track| TrackView {
            track,
            name: track.name(),
            busy_ns: timeline.busy_ns(track),
            busy_share: timeline.busy_share(track),
        })
        .collect()
}

impl Chart {
    /// The chart as JSON, over several lines, with a line end. Carries
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION), and for each run its speed-up and how busy its
    /// tracks were.
    #[must_use]
    pub fn json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}
