//! The CUDA driver over the simulated GPU, which stands in for libcuda.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::plan::{Done, Result};
use crate::process::{cargo, program, run, target};

pub(crate) fn build() -> Result {
    run(&mut cargo([
        "build",
        "-p",
        "pinlane-simcuda",
        "-p",
        "pinlane-cli",
    ]))?;
    Ok(Done::Passed)
}

/// The whole suite through the CUDA driver, by the tool itself.
pub(crate) fn conformance() -> Result {
    build()?;
    let folder = stand_in().context("the stand-in cannot be put in place")?;
    let report = folder.join("report");
    let tool = target().join("debug/pinlane");
    run(program(&tool, ["--device", "cuda", "selftest"])
        .env("LD_LIBRARY_PATH", &folder)
        .env("PINLANE_SIMCUDA_REPORT", &report))?;
    judge(&fs::read_to_string(&report).context("the stand-in left no report")?)?;
    Ok(Done::Passed)
}

/// A folder in which the loader finds the stand-in under libcuda's names.
fn stand_in() -> anyhow::Result<PathBuf> {
    let folder = target().join("simcuda");
    fs::create_dir_all(&folder)?;
    let library = target().join("debug/libpinlane_simcuda.so");
    for name in ["libcuda.so.1", "libcuda.so"] {
        let link = folder.join(name);
        // Copied, not linked: the folder may be on a file system without links.
        fs::copy(&library, &link)
            .with_context(|| format!("{} to {}", library.display(), link.display()))?;
    }
    match fs::remove_file(folder.join("report")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(folder),
    }
}

/// What the stand-in wrote at the end. The suite registers and unregisters wrongly here and there,
/// to see that it is refused; nothing else may be wrong, and nothing may be left behind.
fn judge(report: &str) -> anyhow::Result<()> {
    ensure!(
        report
            .lines()
            .any(|line| line.starts_with("context: device 0")),
        "the stand-in was not used"
    );
    let wrong: Vec<&str> = report
        .lines()
        .filter(|line| !line.starts_with("context: device 0"))
        .filter(|line| !(line.starts_with("misuse: ") && line.contains("register")))
        .collect();
    ensure!(
        wrong.is_empty(),
        "the stand-in reports: {}",
        wrong.join("; ")
    );
    Ok(())
}
