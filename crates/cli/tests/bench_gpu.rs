//! `pinlane bench` and `compare` the way they run on a GPU: by rounds and time, both ways with two
//! host threads. The GPU is the stand-in for libcuda, which here keeps to itself that it is one.

#[path = "support/signals.rs"]
mod signals;
mod support;

use std::process::{Command, Output};
use std::time::Duration;

use pinlane_report::{Bench, MemoryKind, Route};
use pinlane_simcuda::testing::Stage;
use signals::{Signal, begun, stopped};
use support::{stderr, stdout};

fn as_real() -> Stage {
    Stage::without(&["pinlane_simcuda_profile"]).expect("the stand-in is built beside the test")
}

fn on(stage: &Stage, words: &[&str]) -> Command {
    let mut command = stage.command(env!("CARGO_BIN_EXE_pinlane"));
    command.args(["--device", "cuda"]).args(words);
    command
}

#[test]
fn every_combination_is_measured_and_checked() {
    let words = ["--json", "bench", "--sizes", "4KiB,8MiB", "--time", "1ms"];
    let output = on(&as_real(), &words).output().expect("the tool starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let report = Bench::from_json(stdout(&output)).expect("a report");
    assert!(report.complete && report.began.is_some());
    assert_eq!(report.lines.len(), 6 * 3 * 2);
    assert_eq!(report.latencies.len(), 6 * 3);
    let mut at = report.lines.iter();
    for memory in MemoryKind::ALL {
        for route in Route::ALL {
            for bytes in [4 << 10, 8 << 20] {
                let line = at.next().expect("a line");
                assert_eq!(
                    (line.point.memory, line.point.route, line.point.bytes),
                    (memory, route, bytes)
                );
                assert!(line.stats.samples >= 4, "{line:?}");
            }
        }
    }
}

#[test]
fn compare_has_every_kind() {
    let words = ["compare", "--size", "8MiB", "--repeat", "2"];
    let output = on(&as_real(), &words).output().expect("the tool starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("\nMeasured on "), "{said}");
    assert!(said.contains("8 MiB per copy, median of 2;"), "{said}");
    for kind in MemoryKind::ALL {
        assert!(said.contains(&format!("\n{} ", kind.name())), "{said}");
    }
    assert!(!said.contains("not measured"), "{said}");
}

#[test]
fn what_cannot_be_pinned_is_left_out_with_its_reason() {
    let words = ["--json", "bench", "--sizes", "4MiB", "--time", "1ms"];
    let output = on(&as_real(), &words)
        .env("PINLANE_PINNED_LIMIT", "10MiB")
        .output()
        .expect("the tool starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let report = Bench::from_json(stdout(&output)).expect("a report");
    let has = |memory| report.lines.iter().any(|line| line.point.memory == memory);
    assert!(has(MemoryKind::Pageable) && has(MemoryKind::Pinned));
    assert!(!has(MemoryKind::Registered));
    let mut notes = report.notes.iter();
    let note = notes.find(|note| note.starts_with("registered: not measured: "));
    assert!(
        note.is_some_and(|note| note.contains("goes over the budget")),
        "{:?}",
        report.notes
    );
}

/// Ended by a signal so long after it began to listen.
fn interrupted_after(stage: &Stage, delay: Duration) -> Output {
    // More than it will come to measure.
    let words = [
        "--json",
        "bench",
        "--sizes",
        "4KiB..8MiB",
        "--time",
        "100000s",
    ];
    let child = begun(&mut on(stage, &words), Signal::Terminate);
    std::thread::sleep(delay);
    stopped(child, Signal::Terminate)
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let stage = as_real();
    // At any moment it ends well, and at a late enough one there is something to show.
    let mut delay = Duration::ZERO;
    loop {
        let output = interrupted_after(&stage, delay);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let report = Bench::from_json(stdout(&output)).expect("a report");
        assert!(!report.complete);
        assert!(report.lines.len() <= 6 * 3 * 12);
        if !report.lines.is_empty() {
            return;
        }
        delay = 2 * delay + Duration::from_millis(50);
    }
}
