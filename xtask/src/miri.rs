//! The library's tests under miri, which knows undefined behaviour when it sees it.

use crate::plan::{Done, Result};
use crate::process::{self, program, succeeds};

/// What runs: test targets of the library that need neither files nor a compiler.
const TARGETS: [&str; 5] = [
    "--lib",
    "--test=scenarios",
    "--test=in_flight",
    "--test=fail_each_call",
    "--test=hostile",
];

/// Isolation is off since tests read the environment. Addresses of mapped memory are exposed on
/// purpose. A buffer that a dead device may still write to is leaked on purpose; the simulator's
/// own books tell that from a leak by mistake.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

pub(crate) fn run() -> Result {
    if !succeeds(&mut nightly(&["miri", "--version"])) {
        return Ok(Done::Skipped(
            "miri is not installed (rustup +nightly component add miri rust-src)".to_owned(),
        ));
    }
    for target in TARGETS {
        let mut command = nightly(&["miri", "test", "-p", "pinlane", target]);
        process::run(
            command
                .env("CARGO_TARGET_DIR", process::target().join("miri"))
                .env("MIRIFLAGS", FLAGS),
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
