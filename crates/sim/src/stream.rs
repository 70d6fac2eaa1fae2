//! Streams and events.

use std::collections::VecDeque;

use pinlane_driver::EventFlags;
use pinlane_model::engine::EarliestStart;

use crate::op::{Mark, Op, Point};

/// How a stream stands to the default stream of its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The default stream itself.
    Default,
    /// Waits for the default stream, and the default stream for it.
    Blocking,
    /// Neither.
    NonBlocking,
}

/// A FIFO of work.
pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) role: Role,
    /// Lower goes first.
    pub(crate) priority: i32,
    /// Work that is not done; the first may be running.
    pub(crate) queue: VecDeque<Op>,
    /// Whether the first of the queue was started.
    pub(crate) running: bool,
    /// When the first of the queue could have been started, or will: engines are handed over.
    pub(crate) ready_ns: Option<u64>,
    /// What the next operation comes behind.
    pub(crate) behind: EarliestStart,
    /// Sequence number of the last operation that is done.
    pub(crate) done: u64,
    /// Said to be captured into a graph.
    pub(crate) capturing: bool,
    /// Destroyed by its owner, still working off its queue.
    pub(crate) destroyed: bool,
}

impl Stream {
    pub(crate) fn new(device: usize, role: Role, priority: i32) -> Self {
        Self {
            device,
            role,
            priority,
            queue: VecDeque::new(),
            running: false,
            ready_ns: None,
            behind: EarliestStart::default(),
            done: 0,
            capturing: false,
            destroyed: false,
        }
    }

    /// Sequence number of the last operation submitted, or of the last done.
    pub(crate) fn last(&self) -> u64 {
        self.queue.back().map_or(self.done, |op| op.sequence)
    }

    /// Whether nothing up to this sequence number is outstanding.
    pub(crate) fn is_past(&self, sequence: u64) -> bool {
        self.queue.front().is_none_or(|op| op.sequence > sequence)
    }
}

/// An event: the place in a stream where it was last recorded.
pub(crate) struct Event {
    pub(crate) device: usize,
    pub(crate) flags: EventFlags,
    pub(crate) recorded: Option<Point>,
    /// Of the last recording.
    pub(crate) mark: Mark,
    pub(crate) fired_ns: Option<u64>,
}
