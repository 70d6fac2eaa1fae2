//! What a program of driver calls takes on a profile, by discrete events and the rules of
//! [`engine`](crate::engine).
//!
//! ```text
//!   Program ── threads ── steps           host.rs     a clock for each thread
//!      │                                  device.rs   streams, events, engines
//!   schedule(profile, program)            run.rs      what happens next
//!      └─ Schedule: spans of engines, spans of host threads, the end
//! ```
//!
//! A program of one thread takes to the nanosecond what it takes on the simulated GPU.
//!
//! ```
//! use pinlane_model::schedule::{Action, Program, Work, schedule};
//! use pinlane_model::{Direction, HostKind, Profile};
//!
//! let mut program = Program::new(1, 0, 0);
//! let work = Work::Copy {
//!     direction: Direction::HostToDevice,
//!     kind: HostKind::Pinned,
//!     bytes: 12_000_000,
//! };
//! let thread = program.thread();
//! program.step(thread, Action::Submit { stream: 0, work });
//! program.step(thread, Action::AwaitStream(0));
//!
//! let profile = Profile::builtin("pcie3-x16").unwrap();
//! let schedule = schedule(&profile, &program)?;
//! assert_eq!(schedule.spans[0].start_ns, 2_000); // submitting
//! assert_eq!(schedule.spans[0].end_ns, 1_004_500); // 2.5 us, then 12 GB/s
//! assert_eq!(schedule.end_ns, 1_007_500); // waking up
//! # Ok::<(), pinlane_model::schedule::ScheduleError>(())
//! ```

mod device;
mod error;
mod host;
mod names;
mod program;
mod queue;
mod run;
mod span;
mod thread;

pub use error::ScheduleError;
pub use program::{Action, Program, Step, Work};
pub use run::schedule;
pub(crate) use run::{Log, Scheduler, Unlogged};
pub use span::{HostSpan, HostState, Schedule, Span};
