//! Running a test's program in a process of its own, with the simulated driver as its libcuda.

#![allow(dead_code, unused_imports)] // every test binary uses a part of this

pub mod api;

use std::env;
use std::process::Stdio;

use pinlane_simcuda::testing::Stage;

/// Set in the child, to the name of the test whose program it runs.
const CHILD: &str = "PINLANE_SIMCUDA_TEST_CHILD";

/// Runs `program` in a child process on `stage` and returns its report. The child is this very
/// test binary, asked to run the test `name` again; there the program runs, and `None` comes back.
pub fn in_child(
    stage: impl FnOnce() -> Stage,
    name: &str,
    settings: &[(&str, &str)],
    program: impl FnOnce(),
) -> Option<Vec<String>> {
    if env::var_os(CHILD).is_some_and(|child| child == name) {
        program();
        return None;
    }
    let stage = stage();
    let mut command = stage.command(env::current_exe().expect("the test's own path"));
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, name).stdin(Stdio::null());
    for (variable, value) in settings {
        command.env(format!("PINLANE_SIMCUDA_{variable}"), value);
    }
    let output = command.output().expect("the test binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the child of {name} failed: {}\n{said}",
        output.status
    );
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(
        ran.contains("1 passed"),
        "the child of {name} ran no test: {ran}"
    );
    Some(stage.report().unwrap_or_default())
}

/// The stage with the whole library.
pub fn whole() -> Stage {
    Stage::new().expect("the library is built beside the test")
}

/// The lines that say that something was wrong.
pub fn complaints(report: &[String]) -> Vec<&str> {
    let lines = report.iter().map(String::as_str);
    lines.filter(|line| !line.starts_with("context:")).collect()
}
