//! Commands that prove nothing by themselves.

use crate::process::{cargo, program, run};

/// Random programs, one a seed; the words are those of the program that runs them.
pub(crate) fn seeds(words: &[&str]) -> anyhow::Result<bool> {
    let command = [
        "run",
        "--release",
        "-p",
        "pinlane-torture",
        "--bin",
        "seeds",
        "--",
    ];
    run(cargo(command).args(words))?;
    Ok(true)
}

/// Compile the kernels anew.
pub(crate) fn kernels() -> anyhow::Result<bool> {
    run(&mut program("python3", ["crates/kernels/compile.py"]))?;
    Ok(true)
}
