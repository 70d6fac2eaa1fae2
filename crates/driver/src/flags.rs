//! Options of the calls that make something.

/// How pinned memory is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostFlags {
    /// Pinned for every device of the process, not only for the one that allocates.
    pub portable: bool,
    /// Visible to kernels at a device address.
    pub mapped: bool,
    /// Not cached by the CPU: fast to write, slow to read.
    pub write_combined: bool,
}

impl Default for HostFlags {
    /// Portable, nothing else.
    fn default() -> Self {
        Self {
            portable: true,
            mapped: false,
            write_combined: false,
        }
    }
}

/// How existing memory is page-locked in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegisterFlags {
    /// Pinned for every device of the process, not only for the one that registers.
    pub portable: bool,
    /// Visible to kernels at a device address.
    pub mapped: bool,
    /// The device only reads it; needed for memory that the process itself may only read.
    pub read_only: bool,
}

impl Default for RegisterFlags {
    /// Portable, nothing else.
    fn default() -> Self {
        Self {
            portable: true,
            mapped: false,
            read_only: false,
        }
    }
}

/// How a stream is created.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamFlags {
    /// Does not wait for the default stream, nor does the default stream wait for it.
    pub non_blocking: bool,
    /// Lower numbers go first. Clamped to [`Driver::stream_priorities`](crate::Driver::stream_priorities).
    pub priority: i32,
}

/// How an event is created.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventFlags {
    /// Keeps the time at which it fired.
    pub timing: bool,
    /// A thread that waits for it sleeps instead of spinning.
    pub blocking_sync: bool,
}
