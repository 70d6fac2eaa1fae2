//! The CUDA backend over simcuda, the simulated GPU with libcuda's symbols.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::run_program::{cargo, program, run, target_dir};
use crate::step_runner::{Outcome, StepResult};

pub(crate) fn build() -> StepResult {
    run(&mut cargo("build -p pinlane-simcuda -p pinlane-cli"))
}

/// Runs the conformance suite with the tool itself, over the CUDA backend.
pub(crate) fn conformance() -> StepResult {
    build()?;
    let folder = library_folder().context("cannot set up the simulated libcuda")?;
    let report = folder.join("report");
    let tool = target_dir().join("debug/pinlane");
    run(program(&tool, ["--device", "cuda", "selftest"])
        .env("LD_LIBRARY_PATH", &folder)
        .env("PINLANE_SIMCUDA_REPORT", &report))?;
    let report = fs::read_to_string(&report).context("simcuda left no report")?;
    check_report(&report)?;
    Ok(Outcome::Passed)
}

/// A folder in which the loader finds simcuda under libcuda's names.
pub(crate) fn library_folder() -> anyhow::Result<PathBuf> {
    let folder = target_dir().join("simcuda");
    fs::create_dir_all(&folder)?;
    let library = target_dir().join("debug/libpinlane_simcuda.so");
    for name in ["libcuda.so.1", "libcuda.so"] {
        copy(&library, &folder.join(name))?;
    }
    match fs::remove_file(folder.join("report")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(folder),
    }
}

/// Copies a file, naming both paths in the error.
pub(crate) fn copy(source: &Path, target: &Path) -> anyhow::Result<()> {
    let paths = || format!("cannot copy {} to {}", source.display(), target.display());
    fs::copy(source, target).with_context(paths).map(drop)
}

/// Checks the report that simcuda wrote at exit. The suite misuses registration on purpose, to
/// test that it is refused; any other misuse or leak is an error.
fn check_report(report: &str) -> anyhow::Result<()> {
    let (contexts, others): (Vec<&str>, Vec<&str>) = report
        .lines()
        .partition(|line| line.starts_with("context: device 0"));
    ensure!(!contexts.is_empty(), "the tool did not use simcuda");
    let wrong: Vec<&str> = others
        .into_iter()
        .filter(|line| !(line.starts_with("misuse: ") && line.contains("register")))
        .collect();
    ensure!(wrong.is_empty(), "simcuda reports: {}", wrong.join("; "));
    Ok(())
}
