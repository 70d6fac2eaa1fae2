//! What copies, kernels and whole programs of them take: pure arithmetic, with no clock, no I/O and
//! no threads.
//!
//! ```text
//!   Profile     a link and its device, as data (TOML)
//!   engine/     which engine an operation needs, who is next, how directions slow each other
//!   schedule/   what a program of driver calls takes, by these rules
//!   pipeline/   a job in chunks, and its program
//!   search/     the best chunk, streams and order for a job, and why
//! ```
//!
//! A [`Profile`] holds facts about a device, and a [`CostCurve`] for each direction and kind of host
//! memory. The simulated GPU feeds its virtual clock from it, and gives its engines out by the
//! rules of [`engine`]: what [`schedule`] says of a program is, to the nanosecond, what happens
//! there. Everything is computed in integers, so that a result is the same on every machine.
//!
//! ```
//! use pinlane_model::{Direction, HostKind, Profile};
//!
//! let profile = Profile::builtin("pcie3-x16").unwrap();
//! let pinned_ns = profile.copy_ns(Direction::HostToDevice, HostKind::Pinned, 12_000_000_000);
//! assert_eq!(pinned_ns / 1_000_000_000, 1); // 12 GB a second
//! ```

#![forbid(unsafe_code)]

mod builtin;
mod curve;
pub mod engine;
mod error;
mod median;
pub mod pipeline;
mod profile;
mod random;
pub mod schedule;
pub mod search;

pub use curve::{Area, CostCurve};
pub use error::ProfileError;
pub use median::median;
pub use profile::{
    CallCosts, DeviceFacts, Direction, DirectionCosts, ExpressCosts, FileCosts, HostKind,
    HostMemoryCosts, KernelCosts, PciFacts, Profile,
};
pub use random::SplitMix64;
