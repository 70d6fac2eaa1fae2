//! Tests that cargo runs by itself.

use crate::plan::{Done, Result};
use crate::process::{cargo, run, target};
use crate::{python, simcuda};

/// Unit, integration, compile-fail and doc tests of all crates except torture, which needs
/// optimisation.
pub(crate) fn workspace() -> Result {
    let mut command = cargo(["test", "--workspace", "--exclude", "pinlane-torture"]);
    if let Some(python) = python::with_cuda_bindings() {
        command.env("PINLANE_PYTHON", python);
    }
    run(&mut command)?;
    Ok(Done::Passed)
}

/// The library beside the cudarc crate, over the stand-in for libcuda.
pub(crate) fn feature_cudarc() -> Result {
    simcuda::build()?;
    run(&mut cargo([
        "test",
        "-p",
        "pinlane-core",
        "--features",
        "cudarc",
    ]))?;
    Ok(Done::Passed)
}

/// The protocol under every interleaving. Optimised: a model has many of them.
pub(crate) fn loom() -> Result {
    let words = [
        "test",
        "-p",
        "pinlane-core",
        "--release",
        "--lib",
        "loom_models",
    ];
    run(cargo(words)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("loom")))?;
    Ok(Done::Passed)
}

/// Thousands of random programs with faults of every kind.
pub(crate) fn torture() -> Result {
    run(&mut cargo(["test", "--release", "-p", "pinlane-torture"]))?;
    Ok(Done::Passed)
}
