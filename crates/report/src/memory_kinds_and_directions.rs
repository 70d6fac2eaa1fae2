//! What a copy is between: kinds of host memory, and directions.

use serde::{Deserialize, Serialize};

named_enum! {
    /// A kind of host memory and the way it is copied.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MemoryKind {
        /// Ordinary memory, copied by the driver.
        Pageable = "pageable",
        /// Memory allocated page-locked.
        Pinned = "pinned",
        /// Ordinary memory, page-locked in place.
        Registered = "registered",
        /// Page-locked memory that the CPU writes past its caches.
        WriteCombined = "write-combined",
        /// Page-locked memory that a kernel on the device reads and writes directly.
        Mapped = "mapped",
        /// Ordinary memory, copied by the express lane.
        Express = "express",
    }
}

named_enum! {
    /// Direction of a copy.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Route {
        /// Host to device.
        H2d = "h2d",
        /// Device to host.
        D2h = "d2h",
        /// Both at once, the same number of bytes each way; rates count both.
        Both = "both",
    }
}

impl Route {
    /// Name in sentences.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::H2d => "host to device",
            Self::D2h => "device to host",
            Self::Both => "both ways",
        }
    }

    /// Bytes moved by a copy of `bytes`.
    #[must_use]
    pub fn moved(self, bytes: u64) -> u64 {
        match self {
            Self::Both => bytes.saturating_mul(2),
            _ => bytes,
        }
    }
}
