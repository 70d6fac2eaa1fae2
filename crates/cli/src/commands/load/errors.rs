//! Errors with the flag or file that caused them, and what to do.

use std::io::ErrorKind;

use pinlane::load::{HeaderError, LoadError, LoadErrorKind, NpyError};
use pinlane::{Device, Error};
use pinlane_driver as driver;
use pinlane_report::short_size;

use super::Args;
use crate::input_error::{self, When, failed};

const NAME_A_FILE: &str =
    "name a .safetensors or .npy file, an index (.json), or a folder with such files";

const LOAD_LESS: &str =
    "select fewer tensors with --select, rows with --shard, or a smaller type with --dtype";

/// The error with its exit status.
pub(super) fn explain(error: LoadError, args: &Args, when: When) -> anyhow::Error {
    failed(when, message(&error, args))
}

fn message(error: &LoadError, args: &Args) -> String {
    if let Some(message) = input_error::message(error) {
        return message;
    }
    match error.kind() {
        LoadErrorKind::NoMatch { .. } | LoadErrorKind::InvalidGlob { .. } => {
            format!("--select: {error}; --list shows the names")
        }
        LoadErrorKind::RowsSplitByte { .. } => {
            let shard = args.shard.unwrap_or_default();
            let (rank, world) = (shard.rank(), shard.world());
            format!(
                "--shard {rank}/{world}: {error}; use fewer ranks, or select other tensors with --select"
            )
        }
        LoadErrorKind::Io {
            kind: ErrorKind::NotFound | ErrorKind::NotADirectory,
            ..
        }
        | LoadErrorKind::NotAFile
        | LoadErrorKind::EmptyFolder
        | LoadErrorKind::Header(
            HeaderError::TooShort { .. }
            | HeaderError::Empty
            | HeaderError::TooLarge { .. }
            | HeaderError::NotUtf8 { .. }
            | HeaderError::NotJson { .. }
            | HeaderError::NotAnObject,
        )
        | LoadErrorKind::Npy(NpyError::Magic) => with_remedy(&error.to_string(), NAME_A_FILE),
        LoadErrorKind::DirectIoUnsupported { .. } => {
            format!("--io direct: {error}; use --io auto or --io buffered")
        }
        LoadErrorKind::FileChanged => format!("{error}; load it again when it no longer changes"),
        // These already say what to do.
        _ => error.to_string(),
    }
}

fn with_remedy(message: &str, remedy: &str) -> String {
    match message.ends_with('?') {
        true => format!("{message} If not, {remedy}"),
        false => format!("{message}; {remedy}"),
    }
}

pub(super) fn is_out_of_memory(error: &LoadError) -> bool {
    let LoadErrorKind::Device { error } = error.kind() else {
        return false;
    };
    matches!(&**error, Error::Driver(error) if error.kind == driver::ErrorKind::OutOfMemory)
}

/// The error of a load that does not fit on the device.
pub(super) fn out_of_memory(
    error: LoadError,
    device: &Device,
    needed_bytes: Option<u64>,
) -> anyhow::Error {
    // Frees what the failed load allocated and the device kept.
    device.trim();
    let memory = match (needed_bytes, device.memory_info()) {
        (Some(needed), Ok(memory)) => format!(
            "the tensors take {} of device memory, but {} of {} are free; ",
            short_size(needed),
            short_size(memory.free_bytes),
            short_size(memory.total_bytes)
        ),
        _ => String::new(),
    };
    anyhow::anyhow!("{error}; {memory}{LOAD_LESS}")
}
