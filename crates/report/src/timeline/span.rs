//! One piece of work, and the engine or thread that does it.

use serde::Serialize;

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

/// A row of a chart: an engine or a thread. Rows are shown in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(tag = "engine", content = "index", rename_all = "snake_case")]
pub enum Track {
    /// The thread that submits the job.
    Host,
    /// Another thread of the host.
    HostThread(u32),
    /// A lane that copies between ordinary and pinned memory.
    Staging(u32),
    /// A copy engine, host to device.
    HostToDevice(u32),
    /// An engine that runs kernels.
    Compute(u32),
    /// A copy engine, device to host.
    DeviceToHost(u32),
}

impl Track {
    /// Its name, with its number if its kind has numbers: `Host`, `Compute 0`.
    #[must_use]
    pub fn name(self) -> String {
        self.numbered(self.kind_names().0)
    }

    /// Names of sorted tracks, with numbers only where several are of one kind.
    pub(crate) fn names(tracks: &[Self]) -> Vec<TrackName> {
        let name = |track: &Self| {
            let (long, short) = track.kind_names();
            let same_kind = tracks.iter().filter(|other| other.kind_names().0 == long);
            let [long, short] = match same_kind.count() {
                1 => [long, short].map(str::to_owned),
                _ => [long, short].map(|name| track.numbered(name)),
            };
            TrackName { long, short }
        };
        tracks.iter().map(name).collect()
    }

    /// Long and short name of its kind.
    fn kind_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Host => ("Host", "Host"),
            Self::HostThread(_) => ("Host thread", "Thread"),
            Self::Staging(_) => ("Staging", "Stage"),
            Self::HostToDevice(_) => ("Host to device", "H2D"),
            Self::Compute(_) => ("Compute", "Comp"),
            Self::DeviceToHost(_) => ("Device to host", "D2H"),
        }
    }

    fn numbered(self, name: &str) -> String {
        match self {
            Self::Host => name.to_owned(),
            Self::HostThread(index)
            | Self::Staging(index)
            | Self::HostToDevice(index)
            | Self::Compute(index)
            | Self::DeviceToHost(index) => format!("{name} {index}"),
        }
    }
}

/// Labels of a row, for much and for little room.
#[derive(Clone, Debug)]
pub(crate) struct TrackName {
    pub(crate) long: String,
    pub(crate) short: String,
}
