//! Tests that cargo runs by itself.

use crate::plan::{Done, Result};
use crate::process::{cargo, run, target};
use crate::python;

/// Unit, integration, compile-fail and doc tests of all crates.
pub(crate) fn workspace() -> Result {
    let mut command = cargo(["test", "--workspace"]);
    if let Some(python) = python::with_cuda_bindings() {
        command.env("PINLANE_PYTHON", python);
    }
    run(&mut command)?;
    Ok(Done::Passed)
}

pub(crate) fn feature_cudarc() -> Result {
    run(&mut cargo([
        "test",
        "-p",
        "pinlane",
        "--features",
        "cudarc",
    ]))?;
    Ok(Done::Passed)
}

/// The protocol under every interleaving. Optimised: a model has many of them.
pub(crate) fn loom() -> Result {
    let words = ["test", "-p", "pinlane", "--release", "--lib", "loom"];
    run(cargo(words)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("loom")))?;
    Ok(Done::Passed)
}

/// Thousands of seeds with faults of every kind, optimised.
pub(crate) fn simulation() -> Result {
    let words = ["test", "-p", "pinlane", "--release", "--test", "simulation"];
    run(&mut cargo(words))?;
    Ok(Done::Passed)
}
