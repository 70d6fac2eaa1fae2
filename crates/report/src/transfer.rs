//! What a copy is between: kinds of host memory, and directions.

use serde::{Deserialize, Serialize};

/// A kind of host memory and the way it is copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Ordinary memory, copied by the driver.
    Pageable,
    /// Memory allocated page-locked.
    Pinned,
    /// Ordinary memory, page-locked in place.
    Registered,
    /// Page-locked memory that the CPU writes past its caches.
    WriteCombined,
    /// Page-locked memory that a kernel on the device reads and writes directly.
    Mapped,
    /// Ordinary memory, copied by the express lane.
    Express,
}

impl MemoryKind {
    /// In the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Pageable,
        Self::Pinned,
        Self::Registered,
        Self::WriteCombined,
        Self::Mapped,
        Self::Express,
    ];

    /// Name in tables and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::WriteCombined => "write-combined",
            Self::Mapped => "mapped",
            Self::Express => "express",
        }
    }
}

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Host to device.
    H2d,
    /// Device to host.
    D2h,
    /// Both at once, the same number of bytes each way; rates count both.
    Both,
}

impl Route {
    /// In the order of tables.
    pub const ALL: [Self; 3] = [Self::H2d, Self::D2h, Self::Both];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::H2d => "h2d",
            Self::D2h => "d2h",
            Self::Both => "both",
        }
    }

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
