//! A chart as a trace, for Perfetto and chrome://tracing.

use std::io;

use serde_json::{Map, Value, json};

use super::layout::rows::{Row, rows};
use super::layout::words::{duration, times};
use super::{Chart, Exporter, Span, Timeline};
use crate::{Origin, SCHEMA_VERSION};

/// Events in Chrome's JSON, one a line: a process a run, a thread a track. Where spans of a track
/// overlap it becomes several threads, since a viewer accepts spans of one thread only one behind
/// the other or one within the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trace;

impl Exporter for Trace {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{},\n\"traceEvents\":[",
            other_data(chart)
        )?;
        let mut events = Events { out, any: false };
        // 0 is the idle task of a real trace.
        for (pid, timeline) in (1..).zip(&chart.timelines) {
            events.timeline(chart, timeline, pid)?;
        }
        let separator = if events.any { "\n" } else { "" };
        writeln!(out, "{separator}]}}")
    }
}

fn other_data(chart: &Chart) -> Value {
    let mut data = json!(chart.origin);
    data["schema"] = SCHEMA_VERSION.into();
    data["title"] = chart.title.as_str().into();
    data["about"] = chart.origin.line().into();
    data
}

struct Events<'a> {
    out: &'a mut dyn io::Write,
    any: bool,
}

impl Events<'_> {
    fn timeline(&mut self, chart: &Chart, timeline: &Timeline, pid: usize) -> io::Result<()> {
        let labels = [
            duration(timeline.total_ns()),
            times(chart.speedup(timeline)),
        ];
        let name = process_name(&chart.origin, timeline);
        self.metadata("process_name", pid, 0, &json!({ "name": name }))?;
        self.metadata("process_sort_index", pid, 0, &json!({ "sort_index": pid }))?;
        let labels = json!({ "labels": labels.join(" ").trim() });
        self.metadata("process_labels", pid, 0, &labels)?;
        let mut tid = 1;
        for row in rows(timeline) {
            for (lane, spans) in row.lanes.iter().enumerate() {
                let name = json!({ "name": thread_name(&row, lane) });
                self.metadata("thread_name", pid, tid, &name)?;
                let index = json!({ "sort_index": tid });
                self.metadata("thread_sort_index", pid, tid, &index)?;
                for placed in spans {
                    self.span(placed.span, pid, tid)?;
                }
                tid += 1;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, name: &str, pid: usize, tid: usize, args: &Value) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"M","name":"{name}","pid":{pid},"tid":{tid},"args":{args}}}"#
        ))
    }

    fn span(&mut self, span: &Span, pid: usize, tid: usize) -> io::Result<()> {
        let name = if span.label.is_empty() {
            span.kind.name()
        } else {
            &span.label
        };
        self.event(format_args!(
            r#"{{"ph":"X","name":{},"cat":"{}","ts":{},"dur":{},"pid":{pid},"tid":{tid},"args":{}}}"#,
            Value::from(name),
            span.kind.name(),
            microseconds(span.start_ns),
            microseconds(span.duration_ns()),
            Value::from(args(span)),
        ))
    }

    fn event(&mut self, event: std::fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if self.any { ",\n" } else { "" };
        self.any = true;
        write!(self.out, "{separator}{event}")
    }
}

/// A viewer shows it at once, which is why it says what is not measured.
fn process_name(origin: &Origin, timeline: &Timeline) -> String {
    match origin {
        Origin::Measured { .. } => timeline.name().to_owned(),
        Origin::Simulated { profile, .. } => {
            format!("{} (SIMULATED: sim:{profile})", timeline.name())
        }
        Origin::Computed { .. } => format!("{} ({})", timeline.name(), origin.line()),
    }
}

fn thread_name(row: &Row<'_>, lane: usize) -> String {
    match lane {
        0 => row.name.long.clone(),
        _ => format!("{} ({})", row.name.long, lane + 1),
    }
}

fn args(span: &Span) -> Map<String, Value> {
    let mut args = Map::new();
    if span.bytes > 0 {
        args.insert("bytes".into(), span.bytes.into());
    }
    if let Some(chunk) = span.chunk {
        args.insert("chunk".into(), chunk.into());
    }
    if let Some(stream) = span.stream {
        args.insert("stream".into(), stream.into());
    }
    if let Some(rate) = span.gb_per_s() {
        args.insert("gb_per_s".into(), rate.into());
    }
    args
}

/// Exact, which a floating-point number would not always be.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
