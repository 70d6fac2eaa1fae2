//! How the code looks.

use crate::plan::{Done, Result};
use crate::process::{cargo, run};

pub(crate) fn format() -> Result {
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    Ok(Done::Passed)
}

pub(crate) fn clippy() -> Result {
    run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Done::Passed)
}

pub(crate) fn clippy_cudarc() -> Result {
    run(&mut cargo([
        "clippy",
        "-p",
        "pinlane",
        "--features",
        "cudarc",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Done::Passed)
}
