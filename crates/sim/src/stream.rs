//! Streams and events.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use pinlane_driver::EventFlags;
use pinlane_model::engine_rules::EarliestStart;

use crate::operation::Operation;
use crate::slab::Id;

/// A point in a stream, passed once everything up to this sequence number is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamPoint {
    pub(crate) stream: Id,
    pub(crate) sequence: u64,
}

/// The earliest start after a recorded event, known once it has fired. Shared by the recording and
/// all waits for it, which may outlive the event.
pub(crate) type RecordedStart = Arc<OnceLock<EarliestStart>>;

/// How a stream synchronises with the default stream of its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The default stream itself.
    Default,
    /// It and the default stream wait for each other.
    Blocking,
    /// It does not.
    NonBlocking,
}

/// A queue of operations.
pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) role: Role,
    /// Lower goes first.
    pub(crate) priority: i32,
    /// Operations that are not done; the first may be running.
    pub(crate) queue: VecDeque<Operation>,
    /// Whether the first operation is running.
    pub(crate) running: bool,
    /// When the first operation became ready for its engine, or will be.
    pub(crate) ready_ns: Option<u64>,
    /// Earliest start of the next operation.
    pub(crate) earliest: EarliestStart,
    /// Sequence number of the last operation that is done.
    pub(crate) done: u64,
    /// Pretends to be captured into a graph.
    pub(crate) capturing: bool,
    /// Destroyed by its owner while it has work.
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
            earliest: EarliestStart::default(),
            done: 0,
            capturing: false,
            destroyed: false,
        }
    }

    /// Whether the default stream waits for its work.
    pub(crate) fn blocks(&self, default: &Self) -> bool {
        self.device == default.device && self.role == Role::Blocking
    }

    /// Sequence number of the last submitted operation.
    pub(crate) fn last(&self) -> u64 {
        self.queue.back().map_or(self.done, |op| op.sequence)
    }

    /// Whether everything up to this sequence number is done.
    pub(crate) fn is_past(&self, sequence: u64) -> bool {
        self.queue.front().is_none_or(|op| op.sequence > sequence)
    }
}

/// An event and its last recording.
pub(crate) struct Event {
    pub(crate) device: usize,
    pub(crate) flags: EventFlags,
    pub(crate) recorded: Option<StreamPoint>,
    /// Earliest start after the last recording.
    pub(crate) start: RecordedStart,
    pub(crate) fired_ns: Option<u64>,
}
