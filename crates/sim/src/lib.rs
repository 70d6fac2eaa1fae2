//! A simulated GPU behind Pinlane's driver trait. Not a stub: a device that keeps the CUDA
//! driver's contract, and its traps.
//!
//! ```text
//!   Sim (a machine) ── open(n) ──> Driver (one device)
//!    │  one lock
//!    ├─ host:    virtual clock, pinned and registered ranges
//!    ├─ devices: memory, engines          schedule.rs, run.rs  what runs next
//!    │                                    engines.rs           on what, by the model's rules
//!    ├─ streams: queues of operations     effects.rs           what it does to memory
//!    └─ checks, faults, timeline, trace   plan.rs              from a copy to pieces
//! ```
//!
//! - **Real bytes** move, in stream order, through copy engines and a compute engine; kernels are
//!   the CPU twins of [`pinlane_kernels`].
//! - **The clock is virtual.** Each call, copy and kernel costs what the
//!   [`Profile`](pinlane_model::Profile) says, and engines keep the rules of
//!   [`pinlane_model::engine`], which the schedules of that crate use as well. A plain run gives the same timeline on every
//!   machine, to the nanosecond. (With host callbacks, and so with `.await`, this needs
//!   [`SimBuilder::idle_progress`] off: otherwise time passes while the program sleeps.)
//! - **An adversary on demand** ([`SimBuilder::seed`]) chooses among all schedules that the stream
//!   rules allow, and when within its time an operation touches memory.
//! - **Faults on demand** ([`SimBuilder::faults`]).
//! - **Checks** report memory that changed, was freed or unregistered while in flight, use after
//!   free, wrong and double frees, and leaks ([`Sim::findings`], [`Sim::finish`]).
//!
//! After a fatal error every call fails with it, as on a real GPU, except those that give
//! something back (frees, unregister, destroy, unload): these still work, so that an owner can
//! tidy up.
//!
//! ```
//! use pinlane_driver::{CopyOp, HostFlags, Place};
//! use pinlane_model::Profile;
//! use pinlane_sim::Sim;
//!
//! let sim = Sim::new(Profile::builtin("pcie3-x16").unwrap());
//! let driver = sim.driver();
//! let bytes = 12_000_000;
//! let pinned = driver.host_alloc(bytes, HostFlags::default())?;
//! let device = driver.device_alloc(bytes)?;
//! let copy = CopyOp { target: Place::Device(device), source: Place::Host(pinned), bytes };
//! // SAFETY: both places hold that many bytes, and nobody else uses them.
//! unsafe { driver.copy(copy)? };
//! let span = sim.timeline()[0];
//! assert_eq!(span.end_ns - span.start_ns, 1_002_500); // 2.5 us, then 12 GB/s
//! // SAFETY: both came from this driver, and the copy is done.
//! unsafe {
//!     driver.host_free(pinned)?;
//!     driver.device_free(device)?;
//! }
//! assert!(sim.finish().is_empty());
//! # Ok::<(), pinlane_driver::Error>(())
//! ```

mod adversary;
mod builder;
mod callback;
mod calls;
mod checks;
mod device_calls;
mod device_memory;
mod driver;
mod effects;
mod engines;
mod faults;
mod finding;
mod host_bytes;
mod host_calls;
mod host_memory;
mod kernel;
mod leaks;
mod lookup;
mod machine;
mod module;
mod named;
mod op;
mod pinned_alloc;
mod plan;
mod rng;
mod run;
mod schedule;
mod sim;
mod slab;
mod state;
mod stream;
mod stream_calls;
mod timeline;
mod trace;
mod work_calls;

pub use builder::SimBuilder;
pub use faults::{FaultKind, Faults};
pub use finding::{Finding, FindingKind};
pub use sim::{Allocation, Sim};
pub use timeline::{Engine, Span, SpanKind};
