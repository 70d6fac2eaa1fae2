//! The library's tests under miri, which detects undefined behaviour.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::command::{run, run_captured, target_dir};
use crate::setup::{install_miri, nightly_cargo};
use crate::steps::{Outcome, StepResult};

/// Test targets of the library that need neither files nor a compiler, slowest first.
const TARGETS: [&str; 6] = [
    "--test=scenarios",
    "--test=fail_each_call",
    "--lib",
    "--test=hostile",
    "--test=in_flight",
    "--test=kept_memory",
];

/// Targets that run at the same time; miri interprets each on one thread.
const PARALLEL: usize = 2;

/// Isolation is off because tests read the environment. Addresses of mapped memory are exposed on
/// purpose. A buffer that a dead device may still write to is leaked on purpose; the simulator
/// detects the leaks that are not.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

pub(crate) fn tests() -> StepResult {
    if let skipped @ Outcome::Skipped(_) = install_miri()? {
        return Ok(skipped);
    }
    run(miri_test().arg("--no-run").args(TARGETS))?;
    let remaining = Mutex::new(TARGETS.into_iter());
    let next = || {
        let mut remaining = remaining.lock().unwrap_or_else(PoisonError::into_inner);
        remaining.next()
    };
    let work = || -> Vec<StepResult> {
        std::iter::from_fn(next)
            .map(|target| run_captured(miri_test().arg(target)))
            .collect()
    };
    let results: Vec<StepResult> = thread::scope(|scope| {
        let threads = [(); PARALLEL].map(|()| scope.spawn(work));
        let results = threads.map(|thread| thread.join().expect("work does not panic"));
        results.into_iter().flatten().collect()
    });
    // All targets have run; report the first that failed.
    results.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Outcome::Passed)
}

fn miri_test() -> Command {
    let mut command = nightly_cargo();
    command
        .args(["miri", "test", "-p", "pinlane-core"])
        .env("CARGO_TARGET_DIR", target_dir().join("miri"))
        .env("MIRIFLAGS", FLAGS);
    command
}
