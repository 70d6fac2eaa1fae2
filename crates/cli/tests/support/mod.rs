//! Running the tool.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::process::{Command, Output};

/// The tool with these arguments.
pub fn pinlane(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinlane"));
    command.args(args);
    command
}

/// Runs the tool with these arguments.
pub fn run(args: &[&str]) -> Output {
    pinlane(args).output().expect("pinlane starts")
}

pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

/// Standard output as one line: the tool breaks long lines where the terminal is narrow.
pub fn unwrapped(output: &Output) -> String {
    let words: Vec<_> = stdout(output).split_whitespace().collect();
    words.join(" ")
}

pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}
