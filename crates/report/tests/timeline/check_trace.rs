//! The rules of Chrome's trace events, as Perfetto reads them.

use std::collections::{BTreeMap, BTreeSet};

use pinlane_report::timeline::Chart;
use serde_json::{Map, Value};

type Thread = (u64, u64);

/// Metadata events and the argument that each must have.
const METADATA: [(&str, &str); 5] = [
    ("process_name", "name"),
    ("process_labels", "labels"),
    ("process_sort_index", "sort_index"),
    ("thread_name", "name"),
    ("thread_sort_index", "sort_index"),
];

/// Whether the text is a trace of this chart that a viewer accepts; else why not.
pub fn check(text: &str, chart: &Chart) -> Result<(), String> {
    let trace: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let unit = &trace["displayTimeUnit"];
    if unit != "ms" && unit != "ns" {
        return Err(format!("displayTimeUnit is {unit}"));
    }
    if trace["otherData"]["about"] != chart.origin.line() {
        return Err("otherData does not say where the trace comes from".into());
    }
    let events = trace["traceEvents"].as_array().ok_or("no traceEvents")?;
    let mut seen = Seen::default();
    for event in events {
        seen.event(event)
            .map_err(|reason| format!("{reason}: {event}"))?;
    }
    let spans: usize = chart.timelines.iter().map(|run| run.spans().len()).sum();
    seen.check(chart.timelines.len(), spans)
}

#[derive(Default)]
struct Seen {
    processes: BTreeSet<u64>,
    threads: BTreeSet<Thread>,
    /// Start and end of each span, in microseconds.
    spans: BTreeMap<Thread, Vec<(f64, f64)>>,
}

impl Seen {
    fn event(&mut self, event: &Value) -> Result<(), String> {
        let event = event.as_object().ok_or("not an object")?;
        let pid = whole(event, "pid")?;
        let tid = whole(event, "tid")?;
        let name = event.get("name").and_then(Value::as_str).ok_or("no name")?;
        let args = event
            .get("args")
            .and_then(Value::as_object)
            .ok_or("no args")?;
        match event.get("ph").and_then(Value::as_str) {
            Some("M") => self.metadata(name, pid, tid, args),
            Some("X") => {
                let category = event.get("cat").and_then(Value::as_str);
                category.filter(|cat| !cat.is_empty()).ok_or("no cat")?;
                let (start, length) = (time(event, "ts")?, time(event, "dur")?);
                let spans = self.spans.entry((pid, tid)).or_default();
                spans.push((start, start + length));
                Ok(())
            }
            phase => Err(format!("phase {phase:?}")),
        }
    }

    fn metadata(
        &mut self,
        name: &str,
        pid: u64,
        tid: u64,
        args: &Map<String, Value>,
    ) -> Result<(), String> {
        let (_, needed) = METADATA
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or("unknown metadata")?;
        let value = args.get(*needed).ok_or(format!("no {needed}"))?;
        let sound = if *needed == "sort_index" {
            value.is_u64()
        } else {
            value.is_string()
        };
        if !sound {
            return Err(format!("{needed} is {value}"));
        }
        let new = match name {
            "process_name" => self.processes.insert(pid),
            "thread_name" => self.threads.insert((pid, tid)),
            _ => true,
        };
        if new {
            Ok(())
        } else {
            Err("named twice".into())
        }
    }

    fn check(&self, runs: usize, spans: usize) -> Result<(), String> {
        if self.processes.len() != runs {
            return Err(format!(
                "{} processes for {runs} runs",
                self.processes.len()
            ));
        }
        let found: usize = self.spans.values().map(Vec::len).sum();
        if found != spans {
            return Err(format!("{found} events for {spans} spans"));
        }
        for ((pid, tid), spans) in &self.spans {
            if !self.processes.contains(pid) || !self.threads.contains(&(*pid, *tid)) {
                return Err(format!("{pid}/{tid} has no name"));
            }
            // A viewer drops what overlaps in part; here each span follows the one before it.
            for pair in spans.windows(2) {
                let rounding = 1e-9 * pair[0].1;
                if pair[1].0 + rounding < pair[0].1 {
                    return Err(format!("{pid}/{tid}: {pair:?} overlap"));
                }
            }
        }
        Ok(())
    }
}

fn whole(event: &Map<String, Value>, name: &str) -> Result<u64, String> {
    event
        .get(name)
        .and_then(Value::as_u64)
        .ok_or(format!("{name} is not a whole number"))
}

fn time(event: &Map<String, Value>, name: &str) -> Result<f64, String> {
    event
        .get(name)
        .and_then(Value::as_f64)
        .filter(|time| time.is_finite() && *time >= 0.0)
        .ok_or(format!("{name} is not a time"))
}
