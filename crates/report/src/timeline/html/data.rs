//! The data that the page's scripts draw.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::format::{percent, sanitize};
use crate::timeline::palette::colour;
use crate::timeline::rows::{Shade, ShadedSpan, TrackRow, rows};
use crate::timeline::{Chart, SpanKind, Timeline};

pub(super) fn json(chart: &Chart) -> String {
    let mut labels = Labels::default();
    let timelines = chart.timelines.iter();
    let timelines: Vec<Value> = timelines
        .map(|timeline| run(timeline, &mut labels))
        .collect();
    let data = json!({
        "longest_ns": chart.longest_ns(),
        "kinds": SpanKind::ALL.map(kind),
        "labels": labels.list,
        "timelines": timelines,
    });
    data.to_string()
}

fn kind(kind: SpanKind) -> Value {
    let colours = Shade::ALL.map(|shade| colour(kind, shade));
    json!({
        "name": kind.name(),
        "fills": colours.map(|colour| colour.hex()),
        "inks": colours.map(|colour| colour.ink().hex()),
        "thin": kind == SpanKind::Wait,
    })
}

fn run(timeline: &Timeline, labels: &mut Labels) -> Value {
    let mut row = |row: TrackRow<'_>| {
        json!({
            "name": row.name.long,
            "short": row.name.short,
            "busy": percent(timeline.busy_share(row.track)),
            "lanes": row.lanes.len(),
            "spans": spans(&row.lanes, labels),
        })
    };
    let rows: Vec<Value> = rows(timeline).into_iter().map(&mut row).collect();
    json!({
        "name": timeline.name(),
        "total_ns": timeline.total_ns(),
        "rows": rows,
    })
}

/// In order of their start. An array each, not an object, since there may be many; `span()` in `data.js`
/// names the elements.
fn spans(lanes: &[Vec<ShadedSpan<'_>>], labels: &mut Labels) -> Vec<Value> {
    let lanes = lanes.iter().enumerate();
    let mut spans: Vec<(usize, &ShadedSpan<'_>)> = lanes
        .flat_map(|(lane, spans)| spans.iter().map(move |span| (lane, span)))
        .collect();
    spans.sort_by_key(|(_, shaded)| shaded.span.start_ns);
    let array = |(lane, shaded): (usize, &ShadedSpan<'_>)| {
        let span = shaded.span;
        json!([
            lane,
            span.kind as usize,
            shaded.shade as usize,
            labels.index(&span.label),
            span.stream,
            span.chunk,
            span.bytes,
            span.start_ns,
            span.duration_ns(),
        ])
    };
    spans.into_iter().map(array).collect()
}

/// Each label once; spans refer to it by index.
#[derive(Default)]
struct Labels {
    list: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Labels {
    fn index(&mut self, label: &str) -> usize {
        if let Some(index) = self.indices.get(label) {
            return *index;
        }
        let index = self.list.len();
        self.list.push(sanitize(label).trim().to_owned());
        self.indices.insert(label.to_owned(), index);
        index
    }
}
