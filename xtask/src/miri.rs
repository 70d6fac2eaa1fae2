//! The library's tests under miri, which knows undefined behaviour when it sees it.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::plan::{Done, Result};
use crate::process::{self, program, succeeds};

/// What runs: test targets of the library that need neither files nor a compiler. Those that take
/// longest first.
const TARGETS: [&str; 6] = [
    "--test=scenarios",
    "--test=fail_each_call",
    "--lib",
    "--test=hostile",
    "--test=in_flight",
    "--test=kept_memory",
];

/// Targets that run at the same time: miri has one thread for each.
const AT_ONCE: usize = 2;

/// Isolation is off since tests read the environment. Addresses of mapped memory are exposed on
/// purpose. A buffer that a dead device may still write to is leaked on purpose; the simulator's
/// own books tell that from a leak by mistake.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

pub(crate) fn run() -> Result {
    if !succeeds(&mut nightly(&["miri", "--version"])) {
        return Ok(Done::Skipped(
            "miri is not installed (rustup +nightly component add miri rust-src)".to_owned(),
        ));
    }
    let build: Vec<&str> = ["--no-run"].into_iter().chain(TARGETS).collect();
    process::run(&mut tests(&build))?;
    let left = Mutex::new(TARGETS.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut results = Vec::new();
        while let Some(target) = next() {
            results.push(process::run_told_at_end(&mut tests(&[target])));
        }
        results
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads = [(); AT_ONCE].map(|()| scope.spawn(work));
        let results = threads.map(|thread| thread.join().expect("it does not panic"));
        results.into_iter().flatten().collect()
    });
    // All have run; the first that failed is told.
    results.into_iter().collect::<anyhow::Result<()>>()?;
    Ok(Done::Passed)
}

fn tests(words: &[&str]) -> Command {
    let mut command = nightly(&["miri", "test", "-p", "pinlane-core"]);
    command
        .args(words)
        .env("CARGO_TARGET_DIR", process::target().join("miri"))
        .env("MIRIFLAGS", FLAGS);
    command
}

/// The nightly cargo, through rustup: the cargo that runs us is of one fixed toolchain.
fn nightly(words: &[&str]) -> Command {
    let mut command = program("cargo", ["+nightly"]);
    command
        .args(words)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC");
    command
}
