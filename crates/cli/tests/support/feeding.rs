//! Running `pinlane feed`.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::support::{run, stderr, stdout};

/// On the textbook's link.
pub fn feed(words: &[&str]) -> Output {
    run(&[&["--device", "sim:pcie3-x16", "feed"], words].concat())
}

/// The report of these words, as data.
#[track_caller]
pub fn report(words: &[&str]) -> Value {
    let output = feed(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    serde_json::from_str(stdout(&output)).expect("valid JSON")
}

/// This status, nothing on standard output, and all of `parts` in the message.
#[track_caller]
pub fn refused(words: &[&str], status: i32, parts: &[&str]) {
    let output = feed(words);
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

/// Files of the library's own tests, written by numpy, safetensors and GNU tar.
pub fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../load/tests/data/dataset");
    folder.join(name).to_str().expect("plain text").to_owned()
}
