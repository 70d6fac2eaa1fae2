//! Why no copy of a program was seen.

use std::ffi::OsStr;

use pinlane_boost_files::{Counter, Counters};

use super::program_file::{self, CannotPreload};

/// One sentence for the user.
pub(crate) fn explain(program: &OsStr, processes: &[Counters]) -> String {
    let name = program.to_string_lossy();
    if processes
        .iter()
        .any(|process| process.get(Counter::FoundDriver) > 0)
    {
        let others: u64 = processes
            .iter()
            .map(|it| it.get(Counter::OtherCopies))
            .sum();
        return match others {
            0 => format!("{name} uses CUDA but made no copy between host and device"),
            others => format!(
                "{name} made {others} copies of rows, of blocks or inside of devices, and no others"
            ),
        };
    }
    if !processes.is_empty() {
        return format!(
            "{name} did not load libcuda; if it did, another preloaded library that replaces dlsym may be in front"
        );
    }
    let file = program_file::find(program);
    match file.as_deref().and_then(program_file::cannot_preload) {
        Some(CannotPreload::Setuid) => {
            format!("{name} runs with rights of another user, so nothing is preloaded into it")
        }
        Some(CannotPreload::Static) => {
            format!("{name} is linked statically, so nothing can be preloaded into it")
        }
        Some(CannotPreload::OtherArchitecture) => {
            format!("{name} is a program for another processor than x86-64")
        }
        None => format!("{name} started without the library; it may clear LD_PRELOAD"),
    }
}
