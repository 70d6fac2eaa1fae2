//! What the page's script draws.

use std::collections::HashMap;

use serde::Serialize;

use crate::timeline::layout::palette::colour;
use crate::timeline::layout::rows::{self, Placed};
use crate::timeline::layout::shade::Shade;
use crate::timeline::layout::words::{clean, percent};
use crate::timeline::{Chart, Span, SpanKind, Timeline};

#[derive(Serialize)]
struct Data<'a> {
    longest_ns: u64,
    kinds: Vec<Kind>,
    /// Each label once; spans name it by its place.
    labels: Vec<String>,
    timelines: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Kind {
    name: &'static str,
    fills: [String; 2],
    inks: [String; 2],
    thin: bool,
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    total_ns: u64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    short: String,
    busy: String,
    lanes: usize,
    /// By their start.
    spans: Vec<Bar>,
}

/// A list, not an object, since there may be many. The script's `span()` names its places.
#[derive(Serialize)]
struct Bar(
    usize,
    usize,
    usize,
    usize,
    Option<u32>,
    Option<u64>,
    u64,
    u64,
    u64,
);

/// The chart as JSON.
pub(super) fn json(chart: &Chart) -> String {
    let mut labels = Labels::default();
    let timelines = chart
        .timelines
        .iter()
        .map(|timeline| run(timeline, &mut labels))
        .collect();
    let data = Data {
        longest_ns: chart.longest_ns(),
        kinds: SpanKind::ALL.into_iter().map(kind).collect(),
        labels: labels.list,
        timelines,
    };
    serde_json::to_string(&data).expect("plain data becomes JSON")
}

fn kind(kind: SpanKind) -> Kind {
    let colours = [Shade::Strong, Shade::Soft].map(|shade| colour(kind, shade));
    Kind {
        name: kind.name(),
        fills: colours.map(|colour| colour.hex()),
        inks: colours.map(|colour| colour.ink().hex()),
        thin: kind == SpanKind::Wait,
    }
}

fn run<'a>(timeline: &'a Timeline, labels: &mut Labels) -> Run<'a> {
    let rows = rows::rows(timeline)
        .into_iter()
        .map(|row| Row {
            busy: percent(timeline.busy_share(row.track)),
            lanes: row.lanes.len(),
            spans: bars(&row.lanes, labels),
            name: row.name.long,
            short: row.name.short,
        })
        .collect();
    Run {
        name: timeline.name(),
        total_ns: timeline.total_ns(),
        rows,
    }
}

fn bars(lanes: &[Vec<Placed<'_>>], labels: &mut Labels) -> Vec<Bar> {
    let mut placed: Vec<(usize, &Placed<'_>)> = lanes
        .iter()
        .enumerate()
        .flat_map(|(lane, spans)| spans.iter().map(move |span| (lane, span)))
        .collect();
    placed.sort_by_key(|(_, placed)| placed.span.start_ns);
    placed
        .into_iter()
        .map(|(lane, placed)| {
            let span: &Span = placed.span;
            Bar(
                lane,
                span.kind as usize,
                placed.shade as usize,
                labels.place(&span.label),
                span.stream,
                span.chunk,
                span.bytes,
                span.start_ns,
                span.duration_ns(),
            )
        })
        .collect()
}

#[derive(Default)]
struct Labels {
    list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Labels {
    fn place(&mut self, label: &str) -> usize {
        if let Some(place) = self.places.get(label) {
            return *place;
        }
        let place = self.list.len();
        self.list.push(clean(label).trim().to_owned());
        self.places.insert(label.to_owned(), place);
        place
    }
}
