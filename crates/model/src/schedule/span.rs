//! What a schedule says.

use super::Work;
use crate::engine::{Engine, Need};

/// What a program takes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// What ran on the engines, in the order in which it was done.
    pub spans: Vec<Span>,
    /// What the host threads did, each thread's in order.
    pub host_spans: Vec<HostSpan>,
    /// When each thread had done its last step.
    pub thread_ends_ns: Vec<u64>,
    /// When all threads and all engines were done.
    pub end_ns: u64,
}

/// One operation on one engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Engine that it ran on.
    pub engine: Engine,
    /// Stream that it came from.
    pub stream: u32,
    /// What ran.
    pub work: Work,
    /// When it began.
    pub start_ns: u64,
    /// When it was done.
    pub end_ns: u64,
    /// Its place in the order of submission. Events and waits have places as well.
    pub sequence: u64,
    /// Tag of its step.
    pub tag: u32,
}

/// What a host thread did for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostSpan {
    /// The thread.
    pub thread: u32,
    /// What it did.
    pub state: HostState,
    /// When that began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Tag of its step.
    pub tag: u32,
}

/// What a host thread does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostState {
    /// Is inside a call of the driver.
    Call,
    /// Has the driver copy a pageable source out of the way.
    Staging,
    /// Waits for the device or for another thread, and wakes up.
    Waiting,
    /// Computes.
    Working,
}

impl Schedule {
    /// How long the engines of a kind were busy.
    #[must_use]
    pub fn busy_ns(&self, need: Need) -> u64 {
        let spans = self.spans.iter();
        spans
            .filter(|span| span.work.need() == need)
            .map(|span| span.end_ns - span.start_ns)
            .fold(0, u64::saturating_add)
    }
}
