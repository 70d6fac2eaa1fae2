//! The `pinlane` command-line tool.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let libraries = pinlane_cli::embedded_libraries!();
    ExitCode::from(pinlane_cli::run(std::env::args_os(), libraries))
}
