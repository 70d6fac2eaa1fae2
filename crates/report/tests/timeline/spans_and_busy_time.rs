//! Timelines as data.

use pinlane_report::SCHEMA_VERSION;
use pinlane_report::timeline::{Gap, Span, SpanKind, Timeline, TimelineError, Track};
use serde_json::{Value, json};

use crate::sample;

const ENGINE: Track = Track::Compute(0);

fn kernel(start_ns: u64, end_ns: u64) -> Span {
    Span::new(ENGINE, SpanKind::Kernel, start_ns, end_ns)
}

#[test]
fn a_span_that_ends_before_it_begins_is_refused() {
    let spans = vec![kernel(0, 1), kernel(5, 4).label("late")];
    let error = Timeline::new("run", 10, spans).expect_err("backwards");
    assert_eq!(
        error,
        TimelineError::Backwards {
            index: 1,
            label: "late".into(),
            start_ns: 5,
            end_ns: 4,
        }
    );
    assert!(error.to_string().contains("`late`"));
}

#[test]
fn a_span_that_ends_after_the_run_is_refused() {
    let error = Timeline::new("run", 10, vec![kernel(5, 11)]).expect_err("past the end");
    assert_eq!(
        error,
        TimelineError::PastTheEnd {
            index: 0,
            label: String::new(),
            end_ns: 11,
            total_ns: 10,
        }
    );
    assert!(Timeline::new("run", 10, vec![kernel(10, 10)]).is_ok());
}

#[test]
fn spans_come_out_by_their_start_and_tracks_in_order() {
    let copy = Span::new(Track::HostToDevice(1), SpanKind::HostToDevice, 1, 2);
    let spans = vec![kernel(7, 8), copy, kernel(3, 4)];
    let run = Timeline::new("run", 10, spans).expect("in order");
    let starts: Vec<u64> = run.spans().iter().map(|span| span.start_ns).collect();
    assert_eq!(starts, [1, 3, 7]);
    assert_eq!(run.tracks(), [Track::HostToDevice(1), ENGINE]);
    let mut order = vec![
        Track::DeviceToHost(0),
        Track::Compute(1),
        Track::Compute(0),
        Track::HostToDevice(0),
        Track::Staging(0),
        Track::HostThread(0),
        Track::Host,
    ];
    order.sort_unstable();
    let names: Vec<String> = order.into_iter().map(Track::name).collect();
    assert_eq!(
        names,
        [
            "Host",
            "Host thread 0",
            "Staging 0",
            "Host to device 0",
            "Compute 0",
            "Compute 1",
            "Device to host 0"
        ]
    );
}

#[test]
fn overlapping_spans_count_once_and_waiting_does_not_count() {
    let wait = Span::new(ENGINE, SpanKind::Wait, 50, 90);
    let spans = vec![
        kernel(10, 30),
        kernel(20, 40),
        kernel(25, 26),
        wait,
        kernel(90, 100),
    ];
    let run = Timeline::new("run", 100, spans).expect("in order");
    assert_eq!(run.busy_ns(ENGINE), 40);
    assert!((run.busy_share(ENGINE) - 0.4).abs() < 1e-12);
    let gap = |start_ns, end_ns| Gap { start_ns, end_ns };
    assert_eq!(run.gaps(ENGINE), [gap(0, 10), gap(40, 90)]);
    assert_eq!(run.gaps(Track::Host), [gap(0, 100)]);
    assert_eq!(run.busy_ns(Track::Host), 0);
}

#[test]
fn a_run_without_time_has_no_share_and_no_speedup() {
    let mut chart = sample::small();
    chart
        .timelines
        .push(Timeline::new("nothing", 0, vec![kernel(0, 0)]).expect("in order"));
    let [serial, chunks, nothing] = &chart.timelines[..] else {
        panic!("three runs");
    };
    assert_eq!(chart.speedup(serial), Some(1.0));
    assert_eq!(chart.speedup(chunks), Some(1.5));
    assert_eq!(chart.speedup(nothing), None);
    assert_eq!(nothing.busy_share(ENGINE), 0.0);
    assert_eq!(nothing.gaps(ENGINE), []);
    assert_eq!(chart.longest_ns(), 12_000);
}

#[test]
fn a_rate_needs_bytes_and_time() {
    assert_eq!(kernel(0, 4).bytes(48).gb_per_s(), Some(12.0));
    assert_eq!(kernel(0, 4).gb_per_s(), None);
    assert_eq!(kernel(4, 4).bytes(48).gb_per_s(), None);
}

#[test]
fn json_has_the_data_and_derived_figures() {
    let json: Value = serde_json::from_str(&sample::small().to_json()).expect("JSON");
    assert_eq!(json["schema"], SCHEMA_VERSION);
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "pcie3-x16");
    assert_eq!(json["title"], "Copies and a kernel");
    let run = &json["timelines"][1];
    assert_eq!(run["name"], "Two chunks");
    assert_eq!(run["total_ns"], 8_000);
    assert_eq!(run["speedup"], 1.5);
    assert_eq!(
        run["tracks"][1],
        json!({
            "track": { "engine": "host_to_device", "index": 0 },
            "name": "Host to device 0",
            "busy_ns": 4_000,
            "busy_share": 0.5,
        })
    );
    assert_eq!(
        run["spans"][0],
        json!({
            "track": { "engine": "host_to_device", "index": 0 },
            "kind": "host_to_device",
            "label": "",
            "stream": 0,
            "chunk": 0,
            "bytes": 24_000,
            "start_ns": 0,
            "end_ns": 2_000,
        })
    );
    assert_eq!(run["spans"][1]["track"], json!({ "engine": "host" }));
    assert_eq!(run["spans"][1]["chunk"], Value::Null);
}
