//! Who gets an engine that is free.

/// A place in the queue for an engine; the least goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Turn {
    /// Of its stream; lower goes first.
    pub priority: i32,
    /// When it could have started, had an engine been free.
    pub ready_ns: u64,
    /// Its place in the order of submission.
    pub sequence: u64,
}

impl Turn {
    /// The turn of what needs no engine (events, waits): before all that need one, so that
    /// everything that is ready at a moment is known when engines are given out.
    #[must_use]
    pub fn marker(sequence: u64) -> Self {
        Self {
            priority: i32::MIN,
            ready_ns: 0,
            sequence,
        }
    }
}
