//! `pinlane trace`, as a user sees it.

#[path = "support/programs.rs"]
mod programs;
#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use programs::{compiled, compiled_with};
use scratch::Scratch;
use serde_json::Value;
use support::{pinlane, stderr, stdout};

/// Runs the tool on the simulated GPU. Nothing is left of it but the cache.
fn run(scratch: &Scratch, args: &[&str]) -> Output {
    let temporary = scratch.folder().join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    let mut command = pinlane(&[&["--device", "sim:h200"], args].concat());
    command
        .env("XDG_CACHE_HOME", scratch.folder().join("cache"))
        .env("TMPDIR", &temporary)
        .env_remove("LD_PRELOAD");
    let output = command.output().expect("pinlane starts");
    assert_eq!(fs::read_dir(temporary).expect("a folder").count(), 0);
    output
}

/// The report as JSON.
fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn programs_with_debug_information_have_lines() {
    let scratch = Scratch::new();
    for code in ["-pie", "-no-pie"] {
        let program = compiled_with(&scratch, "findings", &["-g", "-fPIE", code, "-ldl"]);
        let output = run(
            &scratch,
            &["--json", "trace", "--", &program, "pageable_async"],
        );
        let report = json(&output);
        let place = report["findings"][0]["places"][0].as_str();
        let place = place.unwrap_or_else(|| panic!("{:#}", report["findings"]));
        let source = include_str!("../../boost/tests/programs/findings.c");
        let (file, rest) = place.split_once(".c:").expect("a line");
        let (line, function) = rest.split_once(" in ").expect("a function");
        assert!(file.ends_with("findings"), "{place}");
        assert_eq!(function, "pageable_async");
        let line: usize = line.parse().expect("a number");
        let line = source.lines().nth(line - 1).expect("a line of the source");
        assert!(line.contains("cuMemcpyHtoDAsync_v2("), "{line}");
    }
}

#[test]
fn the_report_names_sites_costs_and_findings() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "findings");
    let output = run(&scratch, &["trace", "--", &program, "pageable_async"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "");
    // Offsets into the program depend on its compiler.
    let without_offsets = |line: &str| match line.split_once("+0x") {
        Some((start, rest)) => {
            let end = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{start}+…{end}")
        }
        None => line.to_owned(),
    };
    let lines = stderr(&output)
        .lines()
        .skip_while(|line| *line != "=== Trace ===");
    let lines: Vec<String> = lines.map(without_offsets).collect();
    let from_origin = lines
        .iter()
        .skip_while(|line| !line.starts_with("SIMULATED"));
    let text: Vec<&str> = from_origin.map(String::as_str).collect();
    assert_eq!(text.join("\n"), include_str!("golden/trace.txt").trim_end());
}

#[test]
fn each_mistake_is_found_and_its_twin_is_not() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "findings");
    for mistake in [
        "pageable_async",
        "pageable_strided",
        "registered_again",
        "allocation_in_loop",
        "wrong_release",
        "left_at_exit",
        "small_copies",
        "wait_after_copy",
        "one_stream",
        "legacy_stream",
    ] {
        for (arguments, expected) in [
            (&[mistake][..], vec![mistake]),
            (&[mistake, "right"], vec![]),
        ] {
            let args = [&["--json", "trace", "--", &program], arguments].concat();
            let report = json(&run(&scratch, &args));
            let findings = report["findings"].as_array().expect("a list");
            let found: Vec<&str> = findings.iter().filter_map(|it| it["id"].as_str()).collect();
            assert_eq!(found, expected, "{arguments:?}: {report:#}");
            assert_eq!(report["origin"], "SIMULATED");
        }
    }
}

#[test]
fn exit_status_is_the_programs() {
    let scratch = Scratch::new();
    let output = run(&scratch, &["trace", "--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!((stdout(&output), output.status.code()), ("out\n", Some(7)));
    assert!(
        stderr(&output).contains("no calls were seen"),
        "{}",
        stderr(&output)
    );
    let output = run(&scratch, &["trace", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
    let program = compiled(&scratch, "trace_calls");
    let output = run(&scratch, &["trace", "--", &program, "killed"]);
    assert_eq!(output.status.signal(), Some(9));
    let text = stderr(&output);
    assert!(
        text.contains("Not ended by exit(): 1 of 1 traced."),
        "{text}"
    );
    assert!(text.contains("pageable copy to device"), "{text}");
}

#[test]
fn without_room_for_the_trace_the_program_still_runs() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "findings");
    let script = format!("ulimit -f 100; exec '{program}' pageable_async");
    let output = run(&scratch, &["trace", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("not recorded"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn page_and_timeline_are_written() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "trace_calls");
    let [page, timeline] = ["trace.html", "trace.json"].map(|name| scratch.folder().join(name));
    let [page_name, timeline_name] = [&page, &timeline].map(|path| path.to_str().expect("text"));
    let args = [
        "trace",
        "--html",
        page_name,
        "--trace",
        timeline_name,
        "--top",
        "3",
        "--",
        &program,
    ];
    let output = run(&scratch, &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("--top shows more"));
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("SIMULATED") && page.contains("pageable copy to device"));
    let timeline: Value =
        serde_json::from_str(&fs::read_to_string(timeline).expect("a file")).expect("valid JSON");
    let events = timeline["traceEvents"].as_array().expect("a list");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 22);
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_the_program_runs() {
    let scratch = Scratch::new();
    let output = run(
        &scratch,
        &[
            "trace",
            "--html",
            "/no/such/folder/x.html",
            "--",
            "echo",
            "ran",
        ],
    );
    assert_eq!((stdout(&output), output.status.code()), ("", Some(2)));
    assert!(stderr(&output).contains("--html"), "{}", stderr(&output));
}
