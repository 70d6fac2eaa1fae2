//! What is wrong, with the flag or file that it is about and what to do.

use std::io::ErrorKind;

use pinlane::load::{HeaderError, LoadError, LoadErrorKind, NpyError};
use pinlane::{Device, Error};
use pinlane_driver as driver;
use pinlane_report::amount;

use super::Args;
use crate::source_file::{self, When, failed};

/// What can be named.
const NAME_A_FILE: &str =
    "name a .safetensors or .npy file, an index (.json), or a folder with such files";

/// What to leave out.
const LOAD_LESS: &str =
    "choose some tensors with --select, rows with --shard, or a smaller --dtype";

/// The error for the user.
pub(super) fn told(error: LoadError, args: &Args, when: When) -> anyhow::Error {
    failed(when, message(&error, args))
}

/// With the flag or the file, and the remedy.
fn message(error: &LoadError, args: &Args) -> String {
    if let Some(message) = source_file::told(error) {
        return message;
    }
    match error.kind() {
        LoadErrorKind::NoMatch { .. } | LoadErrorKind::InvalidGlob { .. } => {
            format!("--select: {error}; --list shows the names")
        }
        LoadErrorKind::RowsSplitByte { .. } => {
            let shard = args.shard.map(|shard| (shard.rank, shard.world));
            let (rank, world) = shard.unwrap_or_default();
            format!(
                "--shard {rank}/{world}: {error}; choose fewer ranks, or other tensors with --select"
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
            format!("--io direct: {error}; --io auto and --io buffered do")
        }
        LoadErrorKind::FileChanged => format!("{error}; load it again when nobody writes to it"),
        // These say themselves what to do.
        _ => error.to_string(),
    }
}

fn with_remedy(message: &str, remedy: &str) -> String {
    match message.strip_suffix('?') {
        // A question of its own would stand between them.
        Some(_) => format!("{message} If not, {remedy}"),
        None => format!("{message}; {remedy}"),
    }
}

/// Whether a device has no room.
pub(super) fn is_out_of_memory(error: &LoadError) -> bool {
    let LoadErrorKind::Device { error } = error.kind() else {
        return false;
    };
    let Error::Driver(error) = &**error else {
        return false;
    };
    error.kind == driver::ErrorKind::OutOfMemory
}

/// The device has no room for tensors of so many bytes.
pub(super) fn full(error: LoadError, device: &Device, needed_bytes: Option<u64>) -> anyhow::Error {
    // Of a load that did not fit some has been allocated, and kept.
    device.trim();
    let has = match (needed_bytes, device.memory_info()) {
        (Some(needed), Ok(memory)) => format!(
            "the tensors take {} of device memory, and {} of {} are free; ",
            amount(needed),
            amount(memory.free_bytes),
            amount(memory.total_bytes)
        ),
        _ => String::new(),
    };
    anyhow::anyhow!("{error}; {has}{LOAD_LESS}")
}
