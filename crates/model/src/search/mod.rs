//! The best shape for a job: schedules of many shapes, and the reasons for the one that won.
//!
//! ```text
//!   sizes.rs    which chunks are tried
//!   bound.rs    what no schedule can beat: shapes that cannot win are not scheduled
//!   predict.rs  a shape's time by its schedule; very many chunks by the steady state
//!   limits.rs   what a plan may use
//!   orders.rs   the best shape of each order
//!   verdict.rs  what limits the winner, and what would help
//! ```
//!
//! ```
//! use pinlane_model::Profile;
//! use pinlane_model::pipeline::{Job, KernelTime, Memory};
//! use pinlane_model::search::{Limits, best};
//!
//! let profile = Profile::builtin("h200").unwrap();
//! let job = Job {
//!     bytes_in: 1 << 30,
//!     bytes_out: 1 << 30,
//!     kernel: KernelTime { fixed_ns: 0, ns_per_gib: 4_200_000 },
//!     input: Memory::Pinned,
//!     output: Memory::Pinned,
//!     host_ns_per_chunk: 0,
//! };
//! let plan = best(&job, &profile, &Limits::default())?;
//! let serial = plan.alternatives.iter().find(|it| it.name == "serial, pinned").unwrap();
//! assert!(plan.predicted_ns * 19 < serial.ns * 10); // 1.9 times as fast
//! # Ok::<(), pinlane_model::pipeline::PlanError>(())
//! ```

mod bound;
mod limits;
mod orders;
mod plan;
mod predict;
mod sizes;
mod verdict;

pub use limits::Limits;
pub use orders::{STREAMS_MAX, depths};
pub use plan::{Alternative, Plan, best};
pub use predict::predict_ns;
pub use sizes::power_of_two_chunks;
pub use verdict::{Advice, Bottleneck, Part};
