//! Runs programs at the root of the workspace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::step_runner::{Outcome, StepResult};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Cargo with these arguments, separated by spaces.
pub(crate) fn cargo(args: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    program(cargo, args.split_whitespace())
}

/// A program with these arguments.
pub(crate) fn program<S: AsRef<OsStr>>(
    name: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(root());
    command
}

/// Runs a program; it fails unless the program succeeds.
pub(crate) fn run(command: &mut Command) -> StepResult {
    println!("$ {}", command_line(command));
    let status = command.status();
    let status = status.with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", command_line(command));
    }
    Ok(Outcome::Passed)
}

/// Runs a program beside others: prints its output once it has ended.
pub(crate) fn run_captured(command: &mut Command) -> StepResult {
    let output = command.output();
    let output = output.with_context(|| format!("cannot start {}", name(command)))?;
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    println!("$ {}\n{stderr}{stdout}", command_line(command));
    if !output.status.success() {
        bail!("`{}` failed: {}", command_line(command), output.status);
    }
    Ok(Outcome::Passed)
}

/// Whether a program starts and succeeds. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    let path = Path::new(command.get_program());
    let name = path.file_name().unwrap_or(command.get_program());
    name.to_string_lossy().into_owned()
}

/// The command as a user would type it.
fn command_line(command: &Command) -> String {
    let args = command.get_args().map(OsStr::to_string_lossy);
    let words: Vec<_> = [name(command).into()].into_iter().chain(args).collect();
    words.join(" ")
}
