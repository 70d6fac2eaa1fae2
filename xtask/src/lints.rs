//! Formatting, lints and documentation.

use crate::command::{cargo, run};
use crate::steps::StepResult;

pub(crate) fn format() -> StepResult {
    run(&mut cargo("fmt --all --check"))
}

pub(crate) fn clippy() -> StepResult {
    run(&mut cargo(
        "clippy --workspace --all-targets -- -D warnings",
    ))
}

pub(crate) fn clippy_cudarc() -> StepResult {
    run(&mut cargo(
        "clippy -p pinlane-core --features cudarc --all-targets -- -D warnings",
    ))
}

/// Builds the documentation; a broken link is an error.
pub(crate) fn docs() -> StepResult {
    run(cargo("doc --workspace --no-deps --quiet").env("RUSTDOCFLAGS", "-D warnings"))
}
