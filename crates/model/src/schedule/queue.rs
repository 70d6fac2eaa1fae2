//! What streams hold.

use super::Work;
use crate::engine::Behind;

/// No operation, no stream.
pub(super) const NONE: u32 = u32::MAX;

/// Number of an operation: its place in the order of submission.
pub(super) type OpId = u32;

/// A FIFO of operations, linked by their numbers.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) first: u32,
    pub(super) last: u32,
    /// Operations below this number that were put into this stream are done.
    pub(super) done: OpId,
    pub(super) behind: Behind,
    /// The next stream that waits for the same recording.
    pub(super) next_waiter: u32,
}

impl Stream {
    /// A stream that nothing was put into.
    pub(super) const IDLE: Self = Self {
        first: NONE,
        last: NONE,
        done: 0,
        behind: Behind::NOTHING,
        next_waiter: NONE,
    };
}

/// One operation in a stream.
pub(super) struct Op {
    pub(super) what: What,
    pub(super) stream: u32,
    pub(super) next: u32,
    pub(super) tag: u32,
    pub(super) start_ns: u64,
}

/// What an operation does.
#[derive(Clone, Copy)]
pub(super) enum What {
    Work { work: Work, alone_ns: u64 },
    Record(u32),
    Wait(u32),
}

/// One recording of an event.
pub(super) struct Recording {
    pub(super) op: OpId,
    pub(super) stream: u32,
    pub(super) fired: bool,
    pub(super) behind: Behind,
    pub(super) first_waiter: u32,
}

/// The number of what comes next.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count)
        .ok()
        .filter(|&number| number != NONE)
        .expect("longer programs are refused")
}
