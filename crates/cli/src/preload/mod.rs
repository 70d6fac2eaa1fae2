//! Runs an unmodified program with Pinlane's library preloaded, for `boost` and `trace`.
//!
//! ```text
//!   private_folder   folders that only this user can write to
//!   library_files    the embedded libraries as files, in the cache folder
//!   program          the program's environment, its run, and the counters that it leaves
//!   program_file     what kind of file a program is
//!   machine          the device that it ran on, and its profile
//!   not_seen         why no copy of a program was seen
//! ```

mod library_files;
mod machine;
mod not_seen;
mod private_folder;
mod program;
mod program_file;

pub(crate) use machine::machine;
pub(crate) use program::{PreloadedProgram, ProgramRun};
