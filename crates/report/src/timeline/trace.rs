//! A chart as a trace, for Perfetto and chrome://tracing.

use std::io;

use serde_json::{Map, Value, json};

use super::rows::{TrackRow, rows};
use super::{Chart, Exporter, Span, Timeline};
use crate::format::{duration, speedup_label};
use crate::{Origin, SCHEMA_VERSION};

/// Events in Chrome's JSON format, one per line: a process per run, a thread per track. A track with
/// overlapping spans becomes several threads, since viewers require the spans of a thread to be
/// consecutive or nested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trace;

impl Exporter for Trace {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        // Process 0 is the idle task in real traces.
        let runs = (1..).zip(&chart.timelines);
        let events: Vec<String> = runs
            .flat_map(|(pid, timeline)| events(chart, timeline, pid))
            .collect();
        let separator = if events.is_empty() { "" } else { "\n" };
        writeln!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{},\n\"traceEvents\":[\n{}{separator}]}}",
            other_data(chart),
            events.join(",\n")
        )
    }
}

fn other_data(chart: &Chart) -> Value {
    let mut data = json!(chart.origin);
    data["schema"] = SCHEMA_VERSION.into();
    data["title"] = chart.title.as_str().into();
    data["about"] = chart.origin.line().into();
    data
}

/// The events of a run, each a line of JSON.
fn events(chart: &Chart, timeline: &Timeline, pid: usize) -> Vec<String> {
    let metadata = |name: &str, tid: usize, args: Value| {
        format!(r#"{{"ph":"M","name":"{name}","pid":{pid},"tid":{tid},"args":{args}}}"#)
    };
    let (total, speedup) = (duration(timeline.total_ns()), chart.speedup(timeline));
    let labels = format!("{total} {}", speedup_label(speedup));
    let name = process_name(&chart.origin, timeline);
    let mut events = vec![
        metadata("process_name", 0, json!({ "name": name })),
        metadata("process_sort_index", 0, json!({ "sort_index": pid })),
        metadata("process_labels", 0, json!({ "labels": labels.trim() })),
    ];
    let mut tid = 1;
    for row in rows(timeline) {
        for (lane, spans) in row.lanes.iter().enumerate() {
            let name = thread_name(&row, lane);
            events.push(metadata("thread_name", tid, json!({ "name": name })));
            let index = json!({ "sort_index": tid });
            events.push(metadata("thread_sort_index", tid, index));
            events.extend(spans.iter().map(|shaded| span_event(shaded.span, pid, tid)));
            tid += 1;
        }
    }
    events
}

fn span_event(span: &Span, pid: usize, tid: usize) -> String {
    let name = match span.label.as_str() {
        "" => span.kind.name(),
        label => label,
    };
    format!(
        r#"{{"ph":"X","name":{},"cat":"{}","ts":{},"dur":{},"pid":{pid},"tid":{tid},"args":{}}}"#,
        Value::from(name),
        span.kind.name(),
        microseconds(span.start_ns),
        microseconds(span.duration_ns()),
        Value::from(args(span)),
    )
}

/// Viewers show it first, so it marks what is not measured.
fn process_name(origin: &Origin, timeline: &Timeline) -> String {
    match origin {
        Origin::Measured { .. } => timeline.name().to_owned(),
        Origin::Simulated { profile, .. } => {
            format!("{} (SIMULATED: sim:{profile})", timeline.name())
        }
        Origin::Computed { .. } => format!("{} ({})", timeline.name(), origin.line()),
    }
}

fn thread_name(row: &TrackRow<'_>, lane: usize) -> String {
    match lane {
        0 => row.name.long.clone(),
        _ => format!("{} ({})", row.name.long, lane + 1),
    }
}

fn args(span: &Span) -> Map<String, Value> {
    let args = [
        ("bytes", (span.bytes > 0).then(|| span.bytes.into())),
        ("chunk", span.chunk.map(Value::from)),
        ("stream", span.stream.map(Value::from)),
        ("gb_per_s", span.gb_per_s().map(Value::from)),
    ];
    let present = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    args.into_iter().filter_map(present).collect()
}

/// Exact, unlike a floating-point number.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
