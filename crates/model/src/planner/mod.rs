//! Searches the best shape for a job: schedules many, and explains the result.
//!
//! ```text
//!   plan.rs         the plan, its limits and alternatives
//!   search.rs       the best shape of each order, and which chunk sizes are tried
//!   lower_bound.rs  what no schedule can beat: shapes that cannot win are not scheduled
//!   predict.rs      a shape's duration by its schedule; with many chunks, extrapolated
//!   advice.rs       what limits the best shape, and what would help
//! ```
//!
//! ```
//! use pinlane_model::Profile;
//! use pinlane_model::pipeline::{Job, KernelTime, Memory};
//! use pinlane_model::planner::{Limits, best};
//!
//! let profile = Profile::builtin("h200").unwrap();
//! let job = Job {
//!     bytes_in: 1 << 30,
//!     bytes_out: 1 << 30,
//!     kernel: KernelTime { ns_per_gib: 4_200_000, ..KernelTime::default() },
//!     input: Memory::Pinned,
//!     output: Memory::Pinned,
//!     host_ns_per_chunk: 0,
//! };
//! let plan = best(&job, &profile, &Limits::default())?;
//! let serial = plan.alternatives.iter().find(|it| it.name == "serial, pinned").unwrap();
//! assert!(plan.predicted_ns * 19 < serial.ns * 10); // 1.9 times as fast
//! # Ok::<(), pinlane_model::pipeline::PlanError>(())
//! ```

mod advice;
mod lower_bound;
mod plan;
mod predict;
mod search;

pub use advice::{Advice, Bottleneck, Resource};
pub use plan::{Alternative, Limits, Plan, best};
pub use predict::predict_ns;
pub use search::{STREAMS_MAX, depths, power_of_two_chunks};
