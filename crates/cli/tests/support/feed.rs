//! Running `pinlane feed`.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::support::{run, stderr, stdout};

/// On the simulated PCIe 3 link.
pub fn feed(args: &[&str]) -> Output {
    run(&[&["--device", "sim:pcie3-x16", "feed"], args].concat())
}

/// The JSON report for these arguments.
#[track_caller]
pub fn report(args: &[&str]) -> Value {
    let output = feed(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    serde_json::from_str(stdout(&output)).expect("valid JSON")
}

/// Expects this status, an empty standard output, and all of `parts` in the message.
#[track_caller]
pub fn refused(args: &[&str], status: i32, parts: &[&str]) {
    let output = feed(args);
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

/// Test files of the library, written by numpy, safetensors and GNU tar.
pub fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../load/tests/data/dataset");
    folder.join(name).to_str().expect("plain text").to_owned()
}
