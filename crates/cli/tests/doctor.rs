//! `pinlane doctor`, as a user sees it. The host is unknown, so little is expected of it.

mod support;

use std::process::Output;

use pinlane_simcuda::testing::Stage;
use serde_json::Value;
use support::{pinlane, run, stderr, stdout};

const GROUPS: [&str; 5] = ["gpu", "link", "memory", "limits", "process"];
const STATUSES: [&str; 4] = ["ok", "warn", "fail", "skip"];

/// The report, with checks that apply to every report.
#[track_caller]
fn report(output: &Output) -> Value {
    let json: Value = serde_json::from_str(stdout(output)).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    let findings = json["findings"].as_array().expect("a list");
    let mut counts = [0; 4];
    let mut last_group = 0;
    for finding in findings {
        let place = |names: &[&str], field: &str| {
            let name = finding[field].as_str().expect("a word");
            names.iter().position(|known| *known == name).expect(name)
        };
        let (group, status) = (place(&GROUPS, "group"), place(&STATUSES, "status"));
        assert!(group >= last_group, "groups are in order");
        last_group = group;
        counts[status] += 1;
        assert!(finding["check"].is_string() && finding["seen"].is_string());
        let to_do = matches!(STATUSES[status], "warn" | "fail");
        assert_eq!(finding["remedy"].is_string(), to_do, "{finding}");
    }
    for (status, count) in STATUSES.iter().zip(counts) {
        assert_eq!(json["counts"][status], count, "{status}");
    }
    assert_eq!(json["first"].is_string(), counts[1] + counts[2] > 0);
    assert_eq!(output.status.code(), Some(i32::from(counts[2] > 0)));
    json
}

fn finding<'r>(report: &'r Value, check: &str) -> &'r Value {
    let mut all = report["findings"].as_array().expect("a list").iter();
    all.find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("no check is called {check}"))
}

#[test]
fn text_ends_with_the_verdict() {
    let output = run(&["--device", "sim:pcie3-x16", "doctor"]);
    let text = stdout(&output);
    assert!(
        text.starts_with("Doctor\nSIMULATED: sim:pcie3-x16, not a real GPU; host: this machine")
    );
    for title in ["driver and GPU", "link", "memory", "limits", "process"] {
        assert!(text.lines().any(|line| line == title), "{title}: {text}");
    }
    let verdict = text.lines().last().expect("a line");
    for part in [" ok, ", " warn, ", " fail"] {
        assert!(verdict.contains(part), "{verdict}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(stderr(&output), "");
}

#[test]
fn simulated_devices_are_never_passed_off_as_real() {
    for profile in pinlane_model::Profile::builtin_names() {
        let output = run(&["--device", &format!("sim:{profile}"), "--json", "doctor"]);
        let json = report(&output);
        assert_eq!(json["origin"], "SIMULATED");
        assert_eq!(json["profile"], profile);
        for finding in json["findings"].as_array().expect("a list") {
            assert_eq!(
                finding["simulated"],
                finding["gpu"].is_number(),
                "{finding}"
            );
        }
        assert_eq!(finding(&json, "usable")["status"], "ok");
        assert_eq!(finding(&json, "link")["simulated"], true);
    }
}

#[test]
fn an_invalid_limit_fails_and_comes_first() {
    let args = ["--device", "sim", "--json", "doctor"];
    let output = pinlane(&args)
        .env("PINLANE_PINNED_LIMIT", "plenty")
        .output()
        .expect("pinlane starts");
    let json = report(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(finding(&json, "pinned budget")["status"], "fail");
    let first = json["first"].as_str().expect("something to do");
    assert!(first.contains("PINLANE_PINNED_LIMIT"), "{first}");
    let good = pinlane(&args)
        .env("PINLANE_PINNED_LIMIT", "1GiB")
        .output()
        .expect("pinlane starts");
    let json = report(&good);
    let seen = &finding(&json, "pinned budget")["seen"];
    assert!(
        seen.as_str().is_some_and(|seen| seen.starts_with("1 GiB")),
        "{seen}"
    );
}

/// The tool with a simulated libcuda that lacks these calls.
fn on_stage(missing: &[&str], args: &[&str]) -> Output {
    let stage = Stage::without(missing).expect("the stand-in is built beside the test");
    stage
        .command(env!("CARGO_BIN_EXE_pinlane"))
        .args(args)
        .output()
        .expect("pinlane starts")
}

#[test]
fn a_gpu_is_opened_and_checked() {
    // Without this call the simulated libcuda looks real.
    for device in ["auto", "cuda"] {
        let args = ["--device", device, "--json", "doctor"];
        let output = on_stage(&["pinlane_simcuda_profile"], &args);
        let json = report(&output);
        assert_eq!(json["origin"], "MEASURED");
        assert_eq!(finding(&json, "CUDA driver")["status"], "ok");
        assert_eq!(finding(&json, "GPUs")["status"], "ok");
        assert_eq!(finding(&json, "usable")["status"], "ok");
        assert_eq!(finding(&json, "usable")["gpu"], 0);
        assert_eq!(finding(&json, "GPU memory")["status"], "ok");
    }
}

#[test]
fn a_simulated_libcuda_is_reported_as_simulated() {
    let output = on_stage(&[], &["--device", "cuda", "--json", "doctor"]);
    let json = report(&output);
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(finding(&json, "usable")["simulated"], true);
}

#[test]
fn a_driver_without_a_required_call_fails() {
    let output = on_stage(&["cuMemHostRegister_v2"], &["--json", "doctor"]);
    let json = report(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json.get("origin"), None);
    let driver = finding(&json, "CUDA driver");
    assert_eq!(driver["status"], "fail");
    assert!(
        driver["seen"]
            .as_str()
            .is_some_and(|seen| seen.contains("cuMemHostRegister"))
    );
    assert_eq!(json["first"], "update the NVIDIA driver");
}

#[test]
fn a_missing_device_fails() {
    // No machine has 255 GPUs.
    let output = run(&["--device", "cuda:255", "--json", "doctor"]);
    let json = report(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(finding(&json, "CUDA driver")["status"], "fail");
    assert_eq!(json["devices"], serde_json::json!([]));
    // The host is still checked.
    for check in ["memory available", "huge pages", "CPUs", "pinned budget"] {
        finding(&json, check);
    }
}

#[test]
fn it_runs_on_any_machine_without_arguments() {
    let json = report(&run(&["doctor", "--json"]));
    let driver = &finding(&json, "CUDA driver")["status"];
    assert!(
        driver == "ok" || json["devices"] == serde_json::json!([]),
        "{driver}"
    );
}

#[test]
fn help_shows_two_examples_and_invalid_arguments_are_rejected() {
    let help = run(&["doctor", "--help"]);
    let (_, examples) = stdout(&help).split_once("Examples:").expect("examples");
    assert_eq!(examples.matches("\n  pinlane ").count(), 2);
    let refused = run(&["doctor", "now"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("now"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = pinlane(&["--device", "sim", "doctor"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .output()
        .expect("pinlane starts");
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}
