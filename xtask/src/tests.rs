//! Tests that cargo runs by itself.

use crate::command::{cargo, run, target_dir};
use crate::steps::StepResult;
use crate::{setup, simcuda};

/// Makes the tests run in full. `crates/testing` reads it.
pub(crate) const FULL: (&str, &str) = ("PINLANE_TEST", "full");

/// The fast tests of every crate, as plain `cargo test` runs them.
pub(crate) fn fast() -> StepResult {
    run(&mut cargo("test --workspace"))
}

/// Unit, integration, compile-fail and doc tests in full. The random programs run in a step of
/// their own, which builds them optimised.
pub(crate) fn full() -> StepResult {
    let mut command = cargo("test --workspace --exclude pinlane-torture");
    command.env(FULL.0, FULL.1);
    if let Some(python) = setup::python_with_cuda_bindings() {
        command.env("PINLANE_PYTHON", python);
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
