//! Python programs that use cuda-bindings, which finds every function with `cuGetProcAddress`.
//!
//! `PINLANE_PYTHON` names a Python with the package. Without it the tests are skipped and say so: not
//! every machine can install packages, and `cargo xtask test` counts skipped tests.

mod support;

use std::env;
use std::path::Path;

use support::{complaints, whole};

/// Runs a program of `tests/programs` and returns its report; `None` without Python.
fn run(program: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Option<Vec<String>> {
    let Some(python) = env::var_os("PINLANE_PYTHON") else {
        eprintln!("skipped: PINLANE_PYTHON does not name a Python with cuda-bindings");
        return None;
    };
    let stage = whole();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(program);
    let mut command = stage.command(python);
    command.arg(path).args(arguments);
    for (variable, value) in settings {
        command.env(variable, value);
    }
    let output = command.output().expect("PINLANE_PYTHON starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed:\n{said}"
    );
    Some(stage.report().expect("the program called cuInit"))
}

#[test]
fn a_correct_program_leaves_nothing_to_report() {
    let Some(report) = run("transfers.py", &[], &[]) else {
        return;
    };
    assert_eq!(report, ["context: device 0, primary, 1 time"]);
}

#[test]
fn a_correct_program_runs_with_default_streams_per_thread() {
    let settings = [("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "1")];
    let Some(report) = run("transfers.py", &[], &settings) else {
        return;
    };
    assert_eq!(complaints(&report), [""; 0]);
}

#[test]
fn a_correct_program_works_under_any_legal_schedule() {
    for seed in ["1", "2", "3"] {
        let Some(report) = run("transfers.py", &[], &[("PINLANE_SIMCUDA_SEED", seed)]) else {
            return;
        };
        assert_eq!(complaints(&report), [""; 0], "seed {seed}");
    }
}

#[test]
fn a_forked_child_is_refused() {
    let Some(report) = run("fork.py", &[], &[]) else {
        return;
    };
    assert_eq!(report, [""; 0]);
}

/// Each misuse, and the beginning of its report.
const MISUSES: [(&str, &str); 5] = [
    ("refill", "misuse: host memory changed while in flight"),
    ("wrong-free", "misuse: wrong free function"),
    ("double-free", "misuse: double free"),
    (
        "wrong-base",
        "misuse: freed by an address that is not the base",
    ),
    ("leak", "leak: pinned memory leaked"),
];

#[test]
fn each_misuse_is_reported() {
    for (misuse, beginning) in MISUSES {
        let Some(report) = run("misuse.py", &[misuse], &[]) else {
            return;
        };
        let complaints = complaints(&report);
        assert!(!complaints.is_empty(), "{misuse} was not noticed");
        for line in complaints {
            assert!(line.starts_with(beginning), "{misuse}: {line}");
        }
    }
}
