//! Installs what the full test run needs: Python with cuda-bindings and NVRTC, a browser, miri.
//!
//! What cannot be installed is skipped, with the reason.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::run_program::{program, run, succeeds, target_dir};
use crate::step_runner::{Outcome, StepResult};

/// The version that the tests are written for.
const CUDA_BINDINGS: &str = "cuda-bindings==13.0.3";

/// NVIDIA's compiler library. Any version of CUDA 13 will do.
const NVRTC: &str = "nvidia-cuda-nvrtc==13.*";

/// Program names of Chromium, also searched by the browser tests.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Makes `found` succeed by running `install`, unless it succeeds already. Skips the step when
/// that is impossible on this machine.
fn ensure_installed(
    what: &str,
    found: impl Fn() -> bool,
    install: impl FnOnce() -> anyhow::Result<()>,
) -> StepResult {
    if found() {
        return Ok(Outcome::Passed);
    }
    let installed = install().and_then(|()| {
        ensure!(found(), "it was installed but does not run");
        Ok(())
    });
    Ok(match installed {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Skipped(format!("cannot install {what}: {error:#}")),
    })
}

/// A virtual environment with NVIDIA's own Python bindings and its compiler library.
pub(crate) fn python() -> StepResult {
    ensure_installed(
        "Python packages",
        || python_with_cuda_bindings().is_some() && nvrtc_folder().is_some(),
        || {
            make_venv(&target_dir().join("venv"))?;
            let args = ["-m", "pip", "install", "--quiet", CUDA_BINDINGS, NVRTC];
            run(&mut program(venv_python(), args)).map(drop)
        },
    )
}

/// The interpreter of the virtual environment, if it can import the bindings.
pub(crate) fn python_with_cuda_bindings() -> Option<PathBuf> {
    let args = ["-c", "from cuda.bindings import driver"];
    succeeds(&mut program(venv_python(), args)).then(venv_python)
}

/// The folder of the virtual environment that holds NVRTC.
pub(crate) fn nvrtc_folder() -> Option<PathBuf> {
    let pythons = target_dir().join("venv/lib").read_dir().ok()?;
    let folders = pythons.filter_map(|python| {
        let python = python.ok()?.path();
        Some(python.join("site-packages/nvidia/cu13/lib"))
    });
    folders.into_iter().find(|folder| folder.is_dir())
}

/// A virtual environment in `folder` with the packages of a requirements file.
pub(crate) fn packages(folder: &Path, requirements: &str) -> StepResult {
    let python = folder.join("bin/python");
    let pip = |args: &[&str]| {
        let mut command = program(&python, ["-m", "pip", "install", "--quiet"]);
        command.args(args).args(["-r", requirements]);
        command
    };
    ensure_installed(
        requirements,
        // pip itself says whether something is missing.
        || succeeds(&mut pip(&["--dry-run", "--no-index", "--no-deps"])),
        || {
            make_venv(folder)?;
            run(&mut pip(&[])).map(drop)
        },
    )
}

fn make_venv(folder: &Path) -> anyhow::Result<()> {
    let make = || run(program("python3", ["-m", "venv"]).arg(folder));
    if make().is_err() {
        install_packages(&["python3", "python3-venv"])?;
        make()?;
    }
    Ok(())
}

fn venv_python() -> PathBuf {
    target_dir().join("venv/bin/python")
}

/// A Chromium for the tests of HTML pages.
pub(crate) fn install_browser() -> StepResult {
    ensure_installed(
        "Chromium",
        || browser().is_some(),
        || install_packages(&["chromium"]),
    )
}

/// A Chromium that runs. Ubuntu's package is only a stub that asks for snap.
pub(crate) fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PINLANE_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|folder| BROWSERS.map(|name| folder.join(name)))
        .find(|browser| browser.is_file() && succeeds(&mut program(browser, ["--version"])))
}

/// Miri and the sources that it compiles std from, on the nightly toolchain.
pub(crate) fn install_miri() -> StepResult {
    ensure_installed(
        "miri",
        || succeeds(nightly_cargo().args(["miri", "--version"])),
        || {
            let add = "component add --toolchain nightly miri rust-src";
            // Fails without a nightly toolchain, and with one that was built without miri.
            if run(&mut rustup(add)).is_ok() {
                return Ok(());
            }
            let install = "toolchain install nightly --profile minimal -c miri -c rust-src";
            run(&mut rustup(install)).map(drop)
        },
    )
}

/// The nightly cargo, through rustup: `CARGO` names the toolchain that runs xtask.
pub(crate) fn nightly_cargo() -> Command {
    let mut command = program("cargo", ["+nightly"]);
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    command
}

fn rustup(args: &str) -> Command {
    program("rustup", args.split_whitespace())
}

/// Installs Debian packages. Needs apt and root.
fn install_packages(packages: &[&str]) -> anyhow::Result<()> {
    let user = program("id", ["-u"]).output().context("cannot start id")?;
    if user.stdout.trim_ascii() != b"0" {
        bail!("run as root, or: apt-get install {}", packages.join(" "));
    }
    let apt = |args: &[&str]| {
        let mut command = program("apt-get", args);
        run(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "--quiet"])?;
    apt(&[
        &["install", "--quiet", "--yes", "--no-install-recommends"],
        packages,
    ]
    .concat())?;
    Ok(())
}
