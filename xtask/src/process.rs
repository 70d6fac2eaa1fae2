//! Starting programs in the tree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Cargo, at the root, with these words. It builds into the usual folder.
pub(crate) fn cargo<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    program(
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        words,
    )
}

/// A program, at the root, with these words.
pub(crate) fn program<S: AsRef<OsStr>>(
    name: impl AsRef<OsStr>,
    words: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(name);
    command.args(words).current_dir(root());
    command
}

/// Run to the end; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    println!("$ {}", line(command));
    let status = command
        .status()
        .with_context(|| format!("{} does not start", name(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// As [`run`], for programs that run beside others: what it prints comes when it has ended.
pub(crate) fn run_told_at_end(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{} does not start", name(command)))?;
    let [told, complained] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    println!("$ {}\n{complained}{told}", line(command));
    if !output.status.success() {
        bail!("`{}` ended with {}", line(command), output.status);
    }
    Ok(())
}

/// Whether the program starts and succeeds, without its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned()
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let mut line = name(command);
    for word in command.get_args() {
        line.push(' ');
        line.push_str(&word.to_string_lossy());
    }
    line
}
