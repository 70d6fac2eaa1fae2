//! `pinlane overlap`, on simulated devices.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::Scratch;
use serde_json::Value;
use support::{pinlane, run, stderr, stdout};

const WORDS: [&str; 7] = [
    "--device",
    "sim:pcie3-x16",
    "overlap",
    "--size",
    "8MiB",
    "--streams",
    "3",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    WORDS.iter().chain(more).copied().collect()
}

/// The five variants with their times.
fn totals(args: &[&str]) -> Vec<(String, u64)> {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["chart"]["origin"], "SIMULATED");
    let ways = report["chart"]["timelines"].as_array().expect("the ways");
    let way = |way: &Value| {
        let name = way["name"].as_str().expect("a name").to_owned();
        (name, way["total_ns"].as_u64().expect("a time"))
    };
    ways.iter().map(way).collect()
}

#[test]
fn the_default_job_gives_the_golden_text() {
    let args = ["--device", "sim:pcie3-x16", "overlap", "--size", "12MiB"];
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output), include_str!("golden/overlap.txt"));
}

#[test]
fn no_variant_is_slower_than_the_one_before() {
    let args = ["--device", "sim:h200", "overlap", "--size", "32MiB"];
    let args = [&args[..], &["--kernel", "200us", "--host", "0s"]].concat();
    let totals = totals(&args);
    assert_eq!(totals.len(), 5, "{totals:?}");
    for pair in totals.windows(2) {
        assert!(pair[1].1 <= pair[0].1, "{pair:?}");
    }
    assert!(totals[4].1 * 3 < totals[0].1 * 2, "{totals:?}");
}

/// The prediction has the calls of the run, and the run none that only record it.
#[test]
fn the_plan_takes_as_long_as_predicted() {
    for profile in ["sim:pcie3-x16", "sim:pcie5-x16", "sim:h200"] {
        for (size, kernel) in [("4MiB", "100us"), ("4MiB", "3ms"), ("24MiB", "1ms")] {
            let job = [
                "--device", profile, "overlap", "--size", size, "--kernel", kernel,
            ];
            let args = [&job[..], &["--host", "0s", "--json"]].concat();
            let output = run(&args);
            let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
            let predicted_ns = report["predicted_ns"].as_u64().expect("a time");
            let (name, took_ns) = totals(&args[..args.len() - 1]).remove(4);
            assert!(name.starts_with("Planned"), "{name}");
            let off_ns = predicted_ns.abs_diff(took_ns);
            assert!(
                off_ns * 50 <= took_ns,
                "{args:?}: {predicted_ns} for {took_ns}"
            );
        }
    }
}

#[test]
fn the_kernel_and_the_host_take_the_given_time() {
    let args = with(&["--kernel", "3ms", "--host", "0s", "--json"]);
    let output = run(&args);
    let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    let kernel_ns = report["kernel_ns"].as_u64().expect("a time");
    assert!(kernel_ns.abs_diff(3_000_000) < 30_000, "{kernel_ns}");
    assert_eq!(report["host_ns"], 0);
    let light = run(&with(&["--kernel", "light", "--json"]));
    let report: Value = serde_json::from_str(stdout(&light)).expect("valid JSON");
    // One pass over 8 MiB, read and written at 800 GB/s.
    let kernel_ns = report["kernel_ns"].as_u64().expect("a time");
    assert!((20_000..30_000).contains(&kernel_ns), "{kernel_ns}");
}

#[test]
fn charts_are_written() {
    let scratch = Scratch::new();
    let [svg, html, trace] = ["o.svg", "o.html", "o.json"].map(|name| scratch.file(name));
    let output = run(&with(&["--svg", &svg, "--html", &html, "--trace", &trace]));
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert!(read(&svg).starts_with("<svg") || read(&svg).starts_with("<?xml"));
    assert!(read(&html).contains("</html>") && read(&html).contains("SIMULATED"));
    let trace: Value = serde_json::from_str(&read(&trace)).expect("valid JSON");
    assert!(trace["traceEvents"].as_array().expect("events").len() > 50);
}

#[test]
fn invalid_arguments_name_the_flag() {
    for (args, named) in [
        (&["--size", "0"][..], "--size"),
        (&["--size", "7"], "multiple of 4"),
        (&["--kernel", "NaNms"], "--kernel"),
        (&["--kernel=-1ms"], "--kernel"),
        (&["--kernel", "inf"], "--kernel"),
        (&["--host", "soon"], "--host"),
        (&["--host", "light"], "--host"),
        (&["--streams", "0"], "--streams"),
        (&["--streams", "129"], "--streams"),
        (&["--repeat", "0"], "--repeat"),
    ] {
        let args: Vec<_> = ["--device", "sim", "overlap"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let output = run(&args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(named),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let output = run(&with(&["--svg", "/no/such/folder/o.svg"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("/no/such/folder/o.svg"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_size_that_no_chunk_divides() {
    for size in ["4", "4100", "1000004"] {
        let output = pinlane(&["--device", "sim", "overlap", "--size", size]).output();
        let output = output.expect("pinlane starts");
        assert!(output.status.success(), "{size}: {}", stderr(&output));
    }
}

#[test]
fn the_kernel_of_a_tiny_job_takes_the_given_time() {
    for (size, kernel, wanted_ns) in [("8", "5us", 5_000), ("4KiB", "50ms", 50_000_000_u64)] {
        let args = ["--device", "sim", "--json", "overlap", "--size", size];
        let output = run(&[&args[..], &["--kernel", kernel]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
        let kernel_ns = report["kernel_ns"].as_u64().expect("a time");
        let off_ns = kernel_ns.abs_diff(wanted_ns);
        assert!(off_ns < wanted_ns / 50, "{size}: {kernel_ns}");
    }
}

#[test]
fn kernel_times_that_the_size_does_not_allow_are_refused() {
    for kernel in ["100s", "1ns"] {
        let args = ["--device", "sim", "overlap", "--size", "1MiB"];
        let output = run(&[&args[..], &["--kernel", kernel]].concat());
        assert_eq!(output.status.code(), Some(2), "{kernel}");
        assert_eq!(stdout(&output), "");
        let said = stderr(&output);
        assert!(said.contains("--kernel"), "{said}");
        assert!(said.contains("6.64 µs to 17.6 s"), "{said}");
    }
}
