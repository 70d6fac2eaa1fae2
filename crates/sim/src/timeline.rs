//! What ran when, on which engine.

pub use pinlane_model::engine::Engine;

/// What ran.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpanKind {
    /// A copy from host to device memory.
    HostToDevice,
    /// A copy from device to host memory.
    DeviceToHost,
    /// A copy inside device memory.
    DeviceToDevice,
    /// A copy inside host memory, in stream order.
    HostToHost,
    /// A fill of device memory.
    Memset,
    /// The kernel of this name.
    Kernel(&'static str),
}

/// One operation on one engine, in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Device that it ran on.
    pub device: u32,
    /// Engine that it ran on.
    pub engine: Engine,
    /// Stream that it came from.
    pub stream: u64,
    /// What ran.
    pub kind: SpanKind,
    /// Bytes moved, or touched by a kernel.
    pub bytes: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it was done.
    pub end_ns: u64,
    /// Its place in the order of submission, over all streams and devices.
    pub sequence: u64,
}
