//! A Python with NVIDIA's own bindings, for a client that nobody here wrote.

use std::path::PathBuf;

use crate::plan::{Done, Result};
use crate::process::{program, run, succeeds, target};

/// The version that the tests are written for.
const CUDA_BINDINGS: &str = "cuda-bindings==13.0.3";

/// Make the environment, or keep the one that is there.
pub(crate) fn prepare() -> Result {
    if with_cuda_bindings().is_some() {
        return Ok(Done::Passed);
    }
    if !succeeds(&mut program("python3", ["--version"])) {
        return Ok(Done::Skipped("python3 is not installed".to_owned()));
    }
    let folder = target().join("venv");
    let words = ["-m".as_ref(), "venv".as_ref(), folder.as_os_str()];
    if let Err(error) = run(&mut program("python3", words)) {
        return Ok(Done::Skipped(format!("no virtual environment: {error}")));
    }
    let words = ["-m", "pip", "install", "--quiet", CUDA_BINDINGS];
    if let Err(error) = run(&mut program(interpreter(), words)) {
        return Ok(Done::Skipped(format!(
            "{CUDA_BINDINGS} cannot be installed: {error}"
        )));
    }
    anyhow::ensure!(
        with_cuda_bindings().is_some(),
        "{CUDA_BINDINGS} is installed, but cannot be imported"
    );
    Ok(Done::Passed)
}

/// The interpreter of the environment, if it can import the bindings.
pub(crate) fn with_cuda_bindings() -> Option<PathBuf> {
    let python = interpreter();
    let words = ["-c", "from cuda.bindings import driver"];
    succeeds(&mut program(&python, words)).then_some(python)
}

fn interpreter() -> PathBuf {
    target().join("venv/bin/python")
}
