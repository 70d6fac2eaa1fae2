//! Misuse, and checks that are not part of a call or an operation.
//!
//! ```text
//!   finding             kinds of misuse, and one finding
//!   changed_in_flight   host memory that changes while a copy of it is in flight
//!   leaks               what was created and not released
//! ```
//!
//! Wrong and double frees, and memory freed in use, are found by the calls (`calls/memory.rs`). Memory that is used
//! after its free is found when a copy is submitted (`copy_plan.rs`), and when an operation runs (`run/effects.rs`);
//! the latter also finds uses before an allocation in stream order.

mod changed_in_flight;
mod finding;
mod leaks;

pub use finding::{Finding, FindingKind};
