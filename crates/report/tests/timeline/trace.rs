//! The chart as a trace.

use pinlane_report::timeline::Trace;
use serde_json::{Value, json};

use crate::{check_trace, export, sample};

#[test]
fn a_small_chart_gives_these_events() {
    let chart = sample::small();
    let text = export(&Trace, &chart);
    check_trace::check(&text, &chart).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let find = |name: &str, pid: u64| {
        let found = events
            .iter()
            .find(|event| event["name"] == name && event["pid"] == pid);
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(
        find("process_name", 1)["args"],
        json!({ "name": "Serial (SIMULATED: sim:pcie3-x16)" })
    );
    assert_eq!(
        find("process_labels", 2)["args"],
        json!({ "labels": "8.00 µs 1.50x" })
    );
    assert_eq!(
        *find("input", 1),
        json!({
            "ph": "X", "name": "input", "cat": "host to device",
            "ts": 0.0, "dur": 4.0, "pid": 1, "tid": 1,
            "args": { "bytes": 48_000, "stream": 0, "gb_per_s": 12.0 },
        })
    );
    assert_eq!(find("wait", 2)["ts"], json!(0.5));
    assert_eq!(trace["otherData"]["origin"], "SIMULATED");
    assert_eq!(trace["otherData"]["profile"], "pcie3-x16");
}

#[test]
fn five_ways_give_a_trace() {
    let chart = sample::five();
    let text = export(&Trace, &chart);
    check_trace::check(&text, &chart).expect("a trace");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("five.trace.json");
    std::fs::write(path, text).expect("the folder is there");
}

#[test]
fn the_rules_detect_violations() {
    let chart = sample::small();
    let good = export(&Trace, &chart);
    for (from, to) in [
        ("\"ph\":\"X\"", "\"ph\":\"Q\""),
        ("\"dur\":4.000", "\"dur\":-4.000"),
        ("\"ts\":0.500", "\"ts\":\"0.500\""),
        ("\"ts\":2.000,\"dur\":2.000", "\"ts\":1.000,\"dur\":2.000"),
        ("\"name\":\"thread_name\"", "\"name\":\"thread_label\""),
        (
            "\"name\":\"process_name\",\"pid\":2",
            "\"name\":\"process_name\",\"pid\":1",
        ),
        (
            "SIMULATED: sim:pcie3-x16, not",
            "measured: sim:pcie3-x16, not",
        ),
        ("\"displayTimeUnit\":\"ns\"", "\"displayTimeUnit\":\"h\""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from} is not there");
        assert!(check_trace::check(&bad, &chart).is_err(), "{to} passes");
    }
}
