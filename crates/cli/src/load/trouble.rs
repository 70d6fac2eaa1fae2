//! What is wrong, with the flag or file that it is about and what to do.

use std::io::ErrorKind;

use pinlane::load::{Fault, HeaderFault, LoadError, NpyFault};
use pinlane::{Device, Error};
use pinlane_driver as driver;
use pinlane_report::amount;

use super::Args;
use crate::output::UsageError;
use crate::source_file;

/// What can be named.
const NAME_A_FILE: &str =
    "name a .safetensors or .npy file, an index (.json), or a folder with such files";

/// What to leave out.
const LOAD_LESS: &str =
    "choose some tensors with --select, rows with --shard, or a smaller --dtype";

/// The error for the user: wrong words where another word would do, else a job that failed.
pub(super) fn told(error: LoadError, args: &Args) -> anyhow::Error {
    if let Some(message) = source_file::told(&error) {
        return UsageError::new(message).into();
    }
    let wrong_word = match error.fault() {
        Fault::NothingMatches { .. } | Fault::BadGlob { .. } => {
            Some(format!("--select: {error}; --list shows the names"))
        }
        Fault::RowsSplitByte { .. } => {
            let shard = args.shard.map(|shard| (shard.rank, shard.world));
            let (rank, world) = shard.unwrap_or_default();
            Some(format!(
                "--shard {rank}/{world}: {error}; choose fewer ranks, or other tensors with --select"
            ))
        }
        Fault::Io {
            kind: ErrorKind::NotFound | ErrorKind::NotADirectory,
            ..
        }
        | Fault::NotAFile
        | Fault::NothingHere
        | Fault::Header(
            HeaderFault::TooShort { .. }
            | HeaderFault::Empty
            | HeaderFault::TooLarge { .. }
            | HeaderFault::NotUtf8 { .. }
            | HeaderFault::NotJson { .. }
            | HeaderFault::NotAnObject,
        )
        | Fault::Npy(NpyFault::Magic) => Some(with_remedy(&error.to_string(), NAME_A_FILE)),
        // These say themselves what to name.
        Fault::SeveralIndexes { .. } | Fault::DuplicateTensor { .. } => Some(error.to_string()),
        _ => None,
    };
    match (wrong_word, error.fault()) {
        (Some(message), _) => UsageError::new(message).into(),
        (None, Fault::NoDirectReads { .. }) => {
            let remedy = "--io auto and --io buffered do";
            anyhow::anyhow!("--io direct: {error}; {remedy}")
        }
        (None, Fault::Changed) => {
            anyhow::anyhow!("{error}; load it again when nobody writes to it")
        }
        (None, _) => error.into(),
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
    let Fault::Device { error } = error.fault() else {
        return false;
    };
    let Error::Driver(error) = &**error else {
        return false;
    };
    error.kind == driver::ErrorKind::OutOfMemory
}

/// The device has no room for tensors of so many bytes.
pub(super) fn full(error: LoadError, device: &Device, needed_bytes: Option<u64>) -> anyhow::Error {
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
