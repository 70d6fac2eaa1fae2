//! The library's tests under miri, which knows undefined behaviour when it sees it.

use crate::plan::{Done, Result};
use crate::process::{self, program, succeeds, target};

/// What runs: test targets of the library that need neither files nor a compiler.
const TARGETS: [&[&str]; 2] = [&["--lib"], &["--test", "scenarios"]];

pub(crate) fn run() -> Result {
    if !succeeds(&mut nightly(&["miri", "--version"])) {
        return Ok(Done::Skipped(
            "miri is not installed (rustup +nightly component add miri rust-src)".to_owned(),
        ));
    }
    for words in TARGETS {
        let mut command = nightly(&["miri", "test", "-p", "pinlane"]);
        process::run(
            command
                .args(words)
                .env("CARGO_TARGET_DIR", target().join("miri"))
                // Tests name temporary files, and the allocator's addresses are exposed on purpose.
                .env(
                    "MIRIFLAGS",
                    "-Zmiri-disable-isolation -Zmiri-permissive-provenance",
                ),
        )?;
    }
    Ok(Done::Passed)
}

/// The nightly cargo, through rustup: the cargo that runs us is of one fixed toolchain.
fn nightly(words: &[&str]) -> std::process::Command {
    let mut command = program("cargo", ["+nightly"]);
    command
        .args(words)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC");
    command
}
