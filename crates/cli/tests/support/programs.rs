//! Programs to run with the library preloaded.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::process::Command;

use crate::scratch::Scratch;

/// Compiles a program of crates/boost/tests/programs and returns its path.
pub fn compiled(scratch: &Scratch, name: &str) -> String {
    compiled_with(scratch, name, &["-ldl"])
}

/// The same with other arguments behind the source.
pub fn compiled_with(scratch: &Scratch, name: &str, arguments: &[&str]) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../boost/tests/programs");
    let program = scratch.file(name);
    let output = Command::new("cc")
        .args(["-O1", "-pthread", "-o", &program])
        .arg(format!("{folder}/{name}.c"))
        .args(arguments)
        .output()
        .expect("there is a C compiler");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    program
}
