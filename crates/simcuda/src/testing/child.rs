//! Runs a test's program in a child process, because a process loads libcuda only once.

use std::env;
use std::process::Stdio;

use super::Stage;

/// Set in the child to the name of the test.
const CHILD: &str = "PINLANE_SIMCUDA_TEST_CHILD";

/// Set by hand to run the programs in this process, on the machine's libcuda.
const ON_LIBCUDA: &str = "PINLANE_TEST_ON_LIBCUDA";

/// Runs `program` in a child process on `stage` and returns its report. The child is the same test
/// binary, which runs the test `name` again; there this runs the program and returns `None`.
/// `settings` are those of [the crate](crate), without their common prefix.
///
/// # Panics
/// If the child fails, or runs no test of that name.
pub fn in_child(
    stage: impl FnOnce() -> Stage,
    name: &str,
    settings: &[(&str, &str)],
    program: impl FnOnce(),
) -> Option<Vec<String>> {
    let is_child = env::var_os(CHILD).is_some_and(|child| child == name);
    if is_child || env::var_os(ON_LIBCUDA).is_some() {
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the child of {name} failed under {settings:?}: {}\n{stderr}",
        output.status
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("1 passed"),
        "the child of {name} ran no test: {stdout}"
    );
    Some(stage.report().unwrap_or_default())
}

/// The lines of a report that describe problems.
#[must_use]
pub fn complaints(report: &[String]) -> Vec<&str> {
    let lines = report.iter().map(String::as_str);
    lines.filter(|line| !line.starts_with("context:")).collect()
}
