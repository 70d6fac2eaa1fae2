//! `pinlane bench` and `compare` as on a GPU: rounds and time, and two host threads for both directions. The
//! GPU is the simulated libcuda, made to look real.

#[path = "support/signals.rs"]
mod signals;
mod support;

use std::process::{Command, Output};
use std::time::Duration;

use pinlane_report::{Bench, MemoryKind, Route};
use pinlane_simcuda::testing::Stage;
use signals::{Signal, started_and_listening, stop};
use support::{stderr, stdout};

fn as_real() -> Stage {
    Stage::without(&["pinlane_simcuda_profile"]).expect("the stand-in is built beside the test")
}

fn on(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.command(env!("CARGO_BIN_EXE_pinlane"));
    command.args(["--device", "cuda"]).args(args);
    command
}

#[test]
fn every_combination_is_measured_and_checked() {
    let args = ["--json", "bench", "--sizes", "4KiB,8MiB", "--time", "1ms"];
    let output = on(&as_real(), &args).output().expect("pinlane starts");
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
    let args = ["compare", "--size", "8MiB", "--repeat", "2"];
    let output = on(&as_real(), &args).output().expect("pinlane starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("\nMeasured on "), "{text}");
    assert!(text.contains("8 MiB per copy, median of 2;"), "{text}");
    for kind in MemoryKind::ALL {
        assert!(text.contains(&format!("\n{} ", kind.name())), "{text}");
    }
    assert!(!text.contains("not measured"), "{text}");
}

#[test]
fn memory_that_cannot_be_pinned_is_left_out_with_its_reason() {
    let args = ["--json", "bench", "--sizes", "4MiB", "--time", "1ms"];
    let output = on(&as_real(), &args)
        .env("PINLANE_PINNED_LIMIT", "10MiB")
        .output()
        .expect("pinlane starts");
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

/// Interrupted this long after it installed its handlers.
fn interrupted_after(stage: &Stage, delay: Duration) -> Output {
    // More than it can measure before the signal.
    let args = [
        "--json",
        "bench",
        "--sizes",
        "4KiB..8MiB",
        "--time",
        "100000s",
    ];
    let child = started_and_listening(&mut on(stage, &args), Signal::Terminate);
    std::thread::sleep(delay);
    stop(child, Signal::Terminate)
}

#[test]
fn an_interrupt_keeps_the_results_so_far() {
    let stage = as_real();
    // It may be interrupted at any time; late enough, it has results.
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
