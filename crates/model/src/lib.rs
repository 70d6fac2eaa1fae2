//! Link profiles and what a copy costs: pure arithmetic, with no clock, no I/O and no threads.
//!
//! A [`Profile`] is data (TOML): facts about a device, and a [`CostCurve`] for each direction and
//! kind of host memory. The simulated GPU feeds its virtual clock from it. Everything is computed
//! in integers, so that a result is the same on every machine, to the nanosecond.
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
mod error;
mod profile;

pub use curve::{Area, CostCurve};
pub use error::ProfileError;
pub use profile::{
    CallCosts, DeviceFacts, Direction, DirectionCosts, HostKind, HostMemoryCosts, KernelCosts,
    PciFacts, Profile,
};
