//! Commands that prove nothing by themselves.

use crate::process::{cargo, program, run};

/// The simulation over many seeds.
pub(crate) fn seeds(count: u64) -> anyhow::Result<bool> {
    let words = [
        "test",
        "-p",
        "pinlane",
        "--release",
        "--test",
        "simulation",
        "--",
        "--nocapture",
    ];
    run(cargo(words).env("PINLANE_SEEDS", count.to_string()))?;
    Ok(true)
}

/// Compile the kernels anew.
pub(crate) fn kernels() -> anyhow::Result<bool> {
    run(&mut program("python3", ["crates/kernels/compile.py"]))?;
    Ok(true)
}
