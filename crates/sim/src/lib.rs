//! A simulated GPU that implements Pinlane's driver trait. Not a stub: it keeps the CUDA driver's
//! contract, including its pitfalls.
//!
//! ```text
//!   Sim (a machine) ── open(n) ──> Driver (one device)      driver.rs, calls/
//!    │  one lock                                            machine_lock.rs, state.rs
//!    ├─ host:    virtual clock, page-locked ranges          memory/
//!    ├─ devices: memory, engines                            memory/, run/
//!    ├─ streams: queues of operations                       stream.rs, operation.rs, copy_plan.rs
//!    └─ checks/, faults.rs, adversarial_schedule.rs, timeline.rs, trace_hash.rs
//! ```
//!
//! - **Real bytes** move, in stream order, through copy engines and a compute engine. Kernels run as
//!   CPU twins: the built-in ones are included, your own are added with [`SimBuilder::kernel`].
//! - **The clock is virtual.** Each call, copy and kernel takes the time given by the
//!   [`Profile`](pinlane_model::Profile), and engines follow [`pinlane_model::engine_rules`], as the
//!   planner's schedules do. A plain run has the same timeline on every machine, to the nanosecond.
//!   (With host callbacks, and so with `.await`, turn off [`SimBuilder::idle_progress`] for that:
//!   otherwise time passes while the program sleeps.)
//! - **An adversary** ([`SimBuilder::seed`]) chooses among all schedules that the stream rules
//!   allow, and when an operation accesses memory.
//! - **Faults** are injected by [`SimBuilder::faults`].
//! - **Checks** report memory that was changed, freed or unregistered in flight, use after free,
//!   wrong and double frees, and leaks ([`Sim::findings`], [`Sim::finish`]).
//!
//! After a fatal error every call fails with it, as on a real GPU, except those that release
//! something (free, unregister, destroy, unload): these still work, so that owners can clean up.
//!
//! ```
//! use pinlane_driver::{CopyOp, HostFlags, Place};
//! use pinlane_sim::Sim;
//!
//! let sim = Sim::named("pcie3-x16").unwrap();
//! let driver = sim.driver();
//! let bytes = 12_000_000;
//! let pinned = driver.host_alloc(bytes, HostFlags::default())?;
//! let device = driver.device_alloc(bytes)?;
//! let copy = CopyOp { target: Place::Device(device), source: Place::Host(pinned), bytes };
//! // SAFETY: both places hold that many bytes, and nothing else uses them.
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

mod adversarial_schedule;
mod builder;
mod callbacks;
mod calls;
mod checks;
mod copy_plan;
mod driver;
mod faults;
mod host_thread_clocks;
mod machine_lock;
mod memory;
mod module;
mod operation;
mod profile_lookup;
mod rng;
mod run;
mod sim;
mod slab;
mod state;
mod stream;
mod timeline;
mod trace_hash;

pub use builder::SimBuilder;
pub use checks::{Finding, FindingKind};
pub use faults::{FaultKind, Faults};
pub use pinlane_kernels::{Kernel, Memory, MemoryFault};
pub use profile_lookup::{ProfileNameError, profile_named};
pub use sim::{Allocation, Sim};
pub use timeline::{Engine, Span, SpanKind};
