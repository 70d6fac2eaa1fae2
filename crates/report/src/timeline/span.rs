//! One piece of work.

use serde::Serialize;

use super::Track;

/// What a span is about. One kind has one colour in every format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Work of the host beside the device's.
    HostWork,
    /// Copying between ordinary and pinned memory.
    Staging,
    /// A copy to the device.
    HostToDevice,
    /// A kernel.
    Kernel,
    /// A copy from the device.
    DeviceToHost,
    /// Device memory being set.
    Memset,
    /// A copy within the device.
    DeviceToDevice,
    /// Waiting: the track is held up and does not count as busy.
    Wait,
}

impl SpanKind {
    /// Every kind, in the order of legends.
    pub const ALL: [Self; 8] = [
        Self::HostWork,
        Self::Staging,
        Self::HostToDevice,
        Self::Kernel,
        Self::DeviceToHost,
        Self::Memset,
        Self::DeviceToDevice,
        Self::Wait,
    ];

    /// Its name in legends.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HostWork => "host work",
            Self::Staging => "staging",
            Self::HostToDevice => "host to device",
            Self::Kernel => "kernel",
            Self::DeviceToHost => "device to host",
            Self::Memset => "memset",
            Self::DeviceToDevice => "device to device",
            Self::Wait => "wait",
        }
    }
}

/// One piece of work on one track. Times count from the start of the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Span {
    /// Where it ran.
    pub track: Track,
    /// What it was.
    pub kind: SpanKind,
    /// Its name; may be empty.
    pub label: String,
    /// The stream it was issued on.
    pub stream: Option<u32>,
    /// The chunk of the job that it belongs to.
    pub chunk: Option<u64>,
    /// Bytes that it moved or worked on; 0 where that has no meaning.
    pub bytes: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Span {
    /// A span without label, stream, chunk and bytes.
    #[must_use]
    pub fn new(track: Track, kind: SpanKind, start_ns: u64, end_ns: u64) -> Self {
        Self {
            track,
            kind,
            label: String::new(),
            stream: None,
            chunk: None,
            bytes: 0,
            start_ns,
            end_ns,
        }
    }

    /// The same with this label.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same, issued on this stream.
    #[must_use]
    pub fn stream(mut self, stream: u32) -> Self {
        self.stream = Some(stream);
        self
    }

    /// The same, as part of this chunk.
    #[must_use]
    pub fn chunk(mut self, chunk: u64) -> Self {
        self.chunk = Some(chunk);
        self
    }

    /// The same with this many bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// How long it took.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// 1e9 bytes a second. `None` without bytes or without time.
    #[must_use]
    pub fn gb_per_s(&self) -> Option<f64> {
        let duration_ns = self.duration_ns();
        // Bytes a nanosecond are GB/s.
        (self.bytes > 0 && duration_ns > 0).then(|| self.bytes as f64 / duration_ns as f64)
    }
}
