//! Predicts how long copies, kernels and whole pipelines take: pure arithmetic, without clock, I/O
//! or threads.
//!
//! ```text
//!   Profile        a link and its device, as data (TOML)
//!   engine_rules   which engine an operation needs, which one runs next, how directions slow each other
//!   schedule/      the timeline of a program of driver calls, by these rules
//!   pipeline/      a job in chunks, and its program
//!   planner/       the best chunk size, streams and order for a job, and why
//! ```
//!
//! A [`Profile`] holds facts about a device, and a [`CostCurve`] for each direction and kind of host
//! memory. The simulated GPU runs on the same profile and the same [engine rules](engine_rules), so
//! [`schedule`] predicts its timeline to the nanosecond. Everything is computed in integers, so
//! results are the same on every machine.
//!
//! ```
//! use pinlane_model::{Direction, HostKind, Profile};
//!
//! let profile = Profile::builtin("pcie3-x16").unwrap();
//! let pinned_ns = profile.copy_ns(Direction::HostToDevice, HostKind::Pinned, 12_000_000_000);
//! assert_eq!(pinned_ns / 1_000_000_000, 1); // 12 GB/s
//! ```
//!
//! [`SplitMix64`] and [`median`] are here because every other crate can depend on this one.

#![forbid(unsafe_code)]

mod cost_curve;
pub mod engine_rules;
mod median;
pub mod pipeline;
pub mod planner;
mod profile;
mod random;
pub mod schedule;

pub use cost_curve::{CostCurve, LinearCost};
pub use median::median;
pub use profile::{
    CallCosts, DeviceFacts, Direction, DirectionCosts, ExpressCosts, FileCosts, HostKind,
    HostMemoryCosts, KernelCosts, PciFacts, Profile, ProfileError,
};
pub use random::SplitMix64;
