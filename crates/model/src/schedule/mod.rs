//! The timeline of a program of driver calls: a discrete-event simulation by the rules of
//! [`engine_rules`](crate::engine_rules).
//!
//! ```text
//!   Program ── threads ── steps           host.rs       threads, each with its own clock
//!      │                                  device.rs     streams, events, engines
//!   schedule(profile, program)            scheduler.rs  the event loop
//!      └─ Schedule: spans of engines, spans of host threads, the end
//! ```
//!
//! For a program of one thread, the timeline equals the simulated GPU's to the nanosecond.
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
//! assert_eq!(schedule.spans[0].start_ns, 2_000); // after the call
//! assert_eq!(schedule.spans[0].end_ns, 1_004_500); // 2.5 us, then 12 GB/s
//! assert_eq!(schedule.end_ns, 1_007_500); // and the thread wakes up
//! # Ok::<(), pinlane_model::schedule::ScheduleError>(())
//! ```

mod device;
mod host;
mod program;
mod scheduler;

use crate::engine_rules::{Engine, EngineKind};

pub use program::{Action, Program, Step, Work};
pub use scheduler::schedule;
pub(crate) use scheduler::{NoSpans, Scheduler, SpanSink};

/// The timeline of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// Operations on the engines, in order of completion.
    pub spans: Vec<Span>,
    /// Activities of the host threads, in order within each thread.
    pub host_spans: Vec<HostSpan>,
    /// When each thread ended.
    pub thread_ends_ns: Vec<u64>,
    /// When the last thread or engine was done.
    pub end_ns: u64,
}

/// One operation on one engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The engine.
    pub engine: Engine,
    /// The stream.
    pub stream: u32,
    /// The work.
    pub work: Work,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Number in order of submission, which counts events and waits as well.
    pub sequence: u64,
    /// Tag of the step.
    pub tag: u32,
}

/// One activity of a host thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostSpan {
    /// The thread.
    pub thread: u32,
    /// What the thread did.
    pub state: HostState,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Tag of the step.
    pub tag: u32,
}

/// What a host thread does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostState {
    /// In a driver call.
    Call,
    /// In a driver call that copies a pageable source to a staging buffer.
    Staging,
    /// Blocked until the device or another thread is done, including wake-up.
    Waiting,
    /// Computing, or copying by the express lane.
    Working,
}

impl Schedule {
    /// Time that operations of this kind occupied their engines.
    #[must_use]
    pub fn busy_ns(&self, kind: EngineKind) -> u64 {
        let spans = self.spans.iter();
        spans
            .filter(|span| span.work.engine_kind() == kind)
            .map(|span| span.end_ns - span.start_ns)
            .fold(0, u64::saturating_add)
    }
}

/// Why a program cannot be scheduled. Threads and steps are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A step uses a stream, event or signal that the program does not have.
    #[error("thread {thread}, step {step}: there is no {what} {number}, only {count}")]
    Unknown {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// `stream`, `event` or `signal`.
        what: &'static str,
        /// The number that the step uses.
        number: u32,
        /// How many the program has.
        count: u32,
    },
    /// A wait for an event that has not been recorded.
    #[error("thread {thread}, step {step}: event {event} has not been recorded")]
    NotRecorded {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// The event.
        event: u32,
    },
    /// A thread waits for a signal that never comes.
    #[error("thread {thread}, step {step}: waits for signal {signal}, which never comes")]
    Deadlock {
        /// Host thread.
        thread: usize,
        /// Its step.
        step: usize,
        /// The signal.
        signal: u32,
    },
    /// The program takes longer than 64 bits of nanoseconds.
    #[error("takes more than 2^64 nanoseconds")]
    TooLong,
}
