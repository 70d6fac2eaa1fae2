//! What a load did, and what kept it from being faster.

use std::fmt;
use std::time::Duration;

/// What a load did. Times of threads are those of all of them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoadStats {
    /// From the start, with files opened and room made on the device, to the last byte there.
    pub elapsed: Duration,
    /// Threads that read.
    pub threads: usize,
    /// Bytes that were read through the page cache.
    pub buffered_bytes: u64,
    /// Bytes that were read past it.
    pub direct_bytes: u64,
    /// Time in reads.
    pub reading: Duration,
    /// Time in conversions.
    pub converting: Duration,
    /// Time for which threads waited for the link, with all their slots in flight.
    pub waiting: Duration,
}

/// What kept a load from being faster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoadLimit {
    /// The disk: threads waited for it.
    Disk,
    /// The CPU: threads copied out of the page cache, or converted.
    Cpu,
    /// The link: threads waited for copies to the device.
    Link,
}

impl LoadStats {
    /// Bytes that were read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.buffered_bytes + self.direct_bytes
    }

    /// Bytes of files a second, in 10^9.
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_nanos().max(1) as f64
    }

    /// What kept it from being faster: what threads spent most of their time on.
    #[must_use]
    pub fn limit(&self) -> LoadLimit {
        if self.waiting > (self.reading + self.converting) / 4 {
            LoadLimit::Link
        } else if self.direct_bytes > self.buffered_bytes / 8 && self.reading > self.converting {
            LoadLimit::Disk
        } else {
            LoadLimit::Cpu
        }
    }
}

impl fmt::Display for LoadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::Cpu => "CPU",
            Self::Link => "link",
        })
    }
}
