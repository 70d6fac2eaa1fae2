//! Interrupting the tool.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// A signal that the tool handles.
#[derive(Clone, Copy)]
pub enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "-INT",
            Self::Terminate => "-TERM",
        }
    }

    /// The bit in signal masks.
    fn bit(self) -> u64 {
        match self {
            Self::Interrupt => 1 << 1,
            Self::Terminate => 1 << 14,
        }
    }
}

/// Starts the tool and waits until it handles a signal.
pub fn started_and_listening(command: &mut Command, signal: Signal) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pinlane starts");
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let status = fs::read_to_string(&status).expect("it runs");
        assert!(!status.contains("State:\tZ"), "it has ended");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.expect("a line on signals").trim();
        u64::from_str_radix(caught, 16).expect("a number") & signal.bit() != 0
    };
    while !listens() {
        thread::yield_now();
    }
    child
}

/// Sends the signal and waits for the end.
pub fn stop(child: Child, signal: Signal) -> Output {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args([signal.name(), &pid]).status();
    assert!(killed.expect("kill is there").success());
    child.wait_with_output().expect("it ends")
}
