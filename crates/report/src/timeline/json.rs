//! A chart as JSON.

use serde::{Serialize, Serializer};

use super::{Chart, Timeline, Track};
use crate::Origin;
use crate::versioned_json::{SCHEMA_VERSION, pretty_json};

impl Chart {
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
