//! The tool, told to stop.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// Of those that the tool listens to.
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

    /// In masks of the system.
    fn bit(self) -> u64 {
        match self {
            Self::Interrupt => 1 << 1,
            Self::Terminate => 1 << 14,
        }
    }
}

/// The tool, when it listens to a signal.
pub fn begun(command: &mut Command, signal: Signal) -> Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
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

/// What it says in the end, after the signal.
pub fn stopped(child: Child, signal: Signal) -> Output {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args([signal.name(), &pid]).status();
    assert!(killed.expect("kill is there").success());
    child.wait_with_output().expect("it ends")
}
