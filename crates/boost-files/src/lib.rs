//! What the preloaded library and the tool share: the variables by which the tool configures it, and the counters
//! and traces that it writes for the tool.
//!
//! ```text
//!   pinlane boost ── variables ──> program with libpinlane_boost.so ── counter file ──> pinlane boost --stats
//!   pinlane trace ── variables ──> program with libpinlane_boost.so ── trace file ────> pinlane trace
//! ```
//!
//! The counters are in a file that both map, not in one that is written at the end. So they are right even for a program
//! that was killed.

mod counter_file;
mod counters;
pub mod trace;
pub mod variables;

pub use counter_file::{CounterFile, read_all};
pub use counters::{COUNTERS, Counter, Counters, Direction, PlainReason, SIZE_CLASSES, size_class};
