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
        "pinlane-core",
        "--features",
        "cudarc",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Done::Passed)
}

/// The pages that rustdoc makes, every link in them good.
pub(crate) fn docs() -> Result {
    run(cargo(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Done::Passed)
}
