//! What ran on which engine and when.

pub use pinlane_model::engine_rules::Engine;

/// A kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpanKind {
    /// A copy from host to device memory.
    HostToDevice,
    /// A copy from device to host memory.
    DeviceToHost,
    /// A copy inside device memory.
    DeviceToDevice,
    /// A copy inside host memory.
    HostToHost,
    /// A fill of device memory.
    Memset,
    /// A kernel, by name.
    Kernel(&'static str),
}

/// One operation on one engine, in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The device.
    pub device: u32,
    /// The engine.
    pub engine: Engine,
    /// The stream.
    pub stream: u64,
    /// What ran.
    pub kind: SpanKind,
    /// Bytes copied, or accessed by a kernel.
    pub bytes: u64,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Number in order of submission, over all streams and devices.
    pub sequence: u64,
}
