//! `pinlane selftest`, as a user sees it.

mod support;

use support::{run, stderr, stdout};

#[test]
fn one_line_per_case_then_the_summary() {
    let output = run(&[
        "--device",
        "sim:pcie3-x16",
        "selftest",
        "--filter",
        "events/",
    ]);
    assert!(output.status.success(), "{}", stdout(&output));
    let lines: Vec<_> = stdout(&output).lines().collect();
    let (cases, end) = lines.split_at(lines.len() - 2);
    assert!(
        cases
            .iter()
            .all(|line| line.starts_with("ok       events/"))
    );
    assert_eq!(
        end[0],
        format!("{} passed, 0 failed, 0 skipped", cases.len())
    );
    assert_eq!(end[1], "SIMULATED: sim:pcie3-x16, not a real GPU");
}

#[test]
fn the_whole_suite_passes() {
    let output = run(&["--device", "sim:h200", "--json", "selftest"]);
    assert!(output.status.success(), "{}", stdout(&output));
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "h200");
    assert_eq!((&json["failed"], &json["skipped"]), (&0.into(), &0.into()));
    assert_eq!(json["findings"], serde_json::json!([]));
    assert_eq!(
        json["cases"].as_array().map(Vec::len),
        Some(pinlane_conformance::suite().len())
    );
}

#[test]
fn a_seed_changes_the_schedule() {
    let args = ["--device", "sim", "selftest", "--filter", "streams/"];
    let seeded = run(&[&args[..], &["--seed", "7"]].concat());
    assert!(seeded.status.success(), "{}", stdout(&seeded));
    assert_eq!(stderr(&seeded), "");
}
