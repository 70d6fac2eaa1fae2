//! The figures as a table, for those who do not see the picture.

use std::collections::BTreeSet;

use crate::page::{Cell, Table};
use crate::timeline::layout::words::{duration, percent, times};
use crate::timeline::{Chart, Timeline, Track};

pub(super) fn html(chart: &Chart) -> String {
    let tracks: BTreeSet<Track> = chart.timelines.iter().flat_map(Timeline::tracks).collect();
    let tracks: Vec<Track> = tracks.into_iter().collect();
    let mut columns: Vec<String> = ["Run", "Total", "Speed-up"].map(str::to_owned).into();
    columns.extend(Track::names(&tracks).into_iter().map(|name| name.long));
    let table = Table {
        id: "figures",
        caption: "Total times, speed-ups against the first run, and how busy each track was",
        columns,
        rows: chart
            .timelines
            .iter()
            .map(|timeline| (timeline.name().to_owned(), cells(chart, timeline, &tracks)))
            .collect(),
    };
    table.html()
}

fn cells(chart: &Chart, timeline: &Timeline, tracks: &[Track]) -> Vec<Cell> {
    let own = timeline.tracks();
    let mut cells: Vec<Cell> = vec![
        duration(timeline.total_ns()).into(),
        times(chart.speedup(timeline)).into(),
    ];
    cells.extend(tracks.iter().map(|track| {
        if own.contains(track) {
            percent(timeline.busy_share(*track)).into()
        } else {
            "–".into()
        }
    }));
    cells
}
