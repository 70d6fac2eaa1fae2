//! The result: spans of engines and of host threads.

use super::Work;
use crate::engine::{Engine, EngineKind};

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
