//! Tests that cargo runs by itself.

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::run_program::{cargo, run, run_captured, target_dir};
use crate::setup::{install_miri, nightly_cargo};
use crate::step_runner::{Outcome, StepResult};
use crate::{setup, simcuda};

/// Makes the tests run in full. `crates/testing` reads it.
pub(crate) const FULL: (&str, &str) = ("PINLANE_TEST", "full");

/// Unit, integration, compile-fail and doc tests in full. The random programs run in a step of
/// their own, which builds them optimised.
pub(crate) fn full() -> StepResult {
    let mut command = cargo("test --workspace --exclude pinlane-torture");
    command.env(FULL.0, FULL.1);
    if let Some(python) = setup::python_with_cuda_bindings() {
        command.env("PINLANE_PYTHON", python);
    }
    if let Some(nvrtc) = setup::nvrtc_folder() {
        command.env("PINLANE_NVRTC", nvrtc);
    }
    if let Some(browser) = setup::browser() {
        command.env("PINLANE_CHROMIUM", browser);
    }
    run(&mut command)
}

/// The library together with the cudarc crate, over the simulated libcuda.
pub(crate) fn feature_cudarc() -> StepResult {
    simcuda::build()?;
    run(cargo("test -p pinlane-core --features cudarc").env(FULL.0, FULL.1))
}

/// The protocols under every interleaving. Optimised, since a model has many.
pub(crate) fn loom() -> StepResult {
    run(cargo("test -p pinlane-core --release --lib loom_models")
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target_dir().join("loom")))
}

/// Thousands of random programs with faults of every kind.
pub(crate) fn random_programs() -> StepResult {
    run(cargo("test --release -p pinlane-torture").env(FULL.0, FULL.1))
}

/// Test targets for miri: those that need neither files nor a compiler, slowest first.
const MIRI_TARGETS: [&str; 6] = [
    "--test=scenarios",
    "--test=fail_each_call",
    "--lib",
    "--test=hostile",
    "--test=in_flight",
    "--test=device_memory_cache",
];

/// Targets that run at the same time; miri interprets each on one thread.
const PARALLEL: usize = 2;

/// Isolation is off because tests read the environment. Addresses of mapped memory are exposed on
/// purpose. A buffer that a dead device may still write to is leaked on purpose; the simulator
/// detects the leaks that are not.
const MIRI_FLAGS: &str =
    "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

/// The library's tests under miri, which detects undefined behaviour.
pub(crate) fn miri() -> StepResult {
    if let skipped @ Outcome::Skipped(_) = install_miri()? {
        return Ok(skipped);
    }
    run(miri_test().arg("--no-run").args(MIRI_TARGETS))?;
    let remaining = Mutex::new(MIRI_TARGETS.into_iter());
    let next = || remaining.lock().expect("no panic").next();
    let work = || -> Vec<StepResult> {
        let targets = std::iter::from_fn(next);
        targets
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
        .env("MIRIFLAGS", MIRI_FLAGS);
    command
}
