//! Options for allocating, registering and creating.

/// Options for allocating pinned memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostFlags {
    /// Pinned for every device in the process, not only for the one that allocates.
    pub portable: bool,
    /// Mapped: kernels can access it at a device address.
    pub mapped: bool,
    /// Write-combined: fast for the CPU to write, slow to read.
    pub write_combined: bool,
}

impl Default for HostFlags {
    /// Portable only.
    fn default() -> Self {
        Self {
            portable: true,
            mapped: false,
            write_combined: false,
        }
    }
}

/// Options for page-locking existing memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegisterFlags {
    /// Pinned for every device in the process, not only for the one that registers.
    pub portable: bool,
    /// Mapped: kernels can access it at a device address.
    pub mapped: bool,
    /// Only read by the device. Required for memory that the process itself maps read-only.
    pub read_only: bool,
}

impl Default for RegisterFlags {
    /// Portable only.
    fn default() -> Self {
        Self {
            portable: true,
            mapped: false,
            read_only: false,
        }
    }
}

/// Options for creating a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamFlags {
    /// Not synchronised with the default stream.
    pub non_blocking: bool,
    /// Lower numbers go first. Clamped to
    /// [`Driver::stream_priorities`](crate::Driver::stream_priorities).
    pub priority: i32,
}

/// Options for creating an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventFlags {
    /// Records the time at which it fires.
    pub timing: bool,
    /// Threads that wait for it sleep instead of spinning.
    pub blocking_sync: bool,
}
