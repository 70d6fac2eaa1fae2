//! Running the tool.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::process::{Command, Output};

/// The tool with these words.
pub fn pinlane(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinlane"));
    command.args(args);
    command
}

/// What the tool says to these words.
pub fn run(args: &[&str]) -> Output {
    pinlane(args).output().expect("the tool starts")
}

/// Its standard output.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

/// Its standard error.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}
