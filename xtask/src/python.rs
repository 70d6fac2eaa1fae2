//! The Python package: builds the extension and runs its tests.

use std::path::PathBuf;

use crate::run_program::{cargo, program, root, run, target_dir};
use crate::setup;
use crate::simcuda;
use crate::step_runner::{Outcome, StepResult};

/// What the tests cannot do without.
const REQUIREMENTS: &str = "crates/python/tests/requirements.txt";

/// Torch and what builds on it: gigabytes, so tests that need them are skipped where they cannot be installed.
const TORCH_REQUIREMENTS: &str = "crates/python/tests/requirements-torch.txt";

/// Builds the extension into the package's folder, where Python finds it.
fn build() -> StepResult {
    run(&mut cargo("build -p pinlane-python"))?;
    let library = target_dir().join("debug/lib_native.so");
    let package = root().join("crates/python/python/pinlane/_native.abi3.so");
    // Replaced, not overwritten: a process may have it open.
    let fresh = package.with_extension("new");
    simcuda::copy(&library, &fresh)?;
    std::fs::rename(&fresh, &package)?;
    Ok(Outcome::Passed)
}

/// The tests, with these arguments for pytest.
pub(crate) fn tests(arguments: &[String]) -> StepResult {
    let environment = environment();
    if let skipped @ Outcome::Skipped(_) = setup::packages(&environment, REQUIREMENTS)? {
        return Ok(skipped);
    }
    if let Outcome::Skipped(reason) = setup::packages(&environment, TORCH_REQUIREMENTS)? {
        println!("without torch: {reason}");
    }
    build()?;
    simcuda::build()?;
    let mut pytest = program(environment.join("bin/python"), ["-m", "pytest", "-q"]);
    pytest
        .args(arguments)
        .env("PYTHONPATH", root().join("crates/python/python"))
        .env("PINLANE_SIMCUDA", simcuda::library_folder()?);
    run(&mut pytest)
}

/// The virtual environment of the tests. `PINLANE_PYTHON_ENV` names another one.
fn environment() -> PathBuf {
    let named = std::env::var_os("PINLANE_PYTHON_ENV").map(PathBuf::from);
    named.unwrap_or_else(|| target_dir().join("python-env"))
}
