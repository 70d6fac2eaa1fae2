//! One piece of work.

use serde::Serialize;

use super::Track;

named_enum! {
    /// What a span does. A kind has the same colour in every format.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SpanKind {
        /// Work of the host while the device works.
        HostWork = "host work",
        /// Copying between ordinary and pinned memory.
        Staging = "staging",
        /// A copy to the device.
        HostToDevice = "host to device",
        /// A kernel.
        Kernel = "kernel",
        /// A copy from the device.
        DeviceToHost = "device to host",
        /// Setting device memory.
        Memset = "memset",
        /// A copy within the device.
        DeviceToDevice = "device to device",
        /// Waiting: the track does not count as busy.
        Wait = "wait",
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
    /// The chunk of the job.
    pub chunk: Option<u64>,
    /// Bytes moved or processed; 0 if not applicable.
    pub bytes: u64,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

impl Span {
    /// A span without label, stream, chunk or bytes.
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

    /// Sets the label.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the stream it was issued on.
    #[must_use]
    pub fn stream(mut self, stream: u32) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Sets the chunk it belongs to.
    #[must_use]
    pub fn chunk(mut self, chunk: u64) -> Self {
        self.chunk = Some(chunk);
        self
    }

    /// Sets the number of bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Duration.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// 1e9 bytes a second; `None` without bytes or time.
    #[must_use]
    pub fn gb_per_s(&self) -> Option<f64> {
        let duration_ns = self.duration_ns();
        // Bytes per nanosecond are GB/s.
        (self.bytes > 0 && duration_ns > 0).then(|| self.bytes as f64 / duration_ns as f64)
    }
}
