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
    /// How much of it threads did not run, but waited for a disk (or for a CPU that others had).
    pub blocked: Duration,
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
        } else if self.blocked > (self.reading + self.converting) / 2 {
            LoadLimit::Disk
        } else {
            LoadLimit::Cpu
        }
    }
}

/// How long the calling thread has run on a CPU.
pub(super) fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is filled in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    // A clock that there is not has not run.
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LoadLimit, LoadStats};

    fn limit(reading_ms: u64, blocked_ms: u64, converting_ms: u64, waiting_ms: u64) -> LoadLimit {
        let [reading, blocked, converting, waiting] =
            [reading_ms, blocked_ms, converting_ms, waiting_ms].map(Duration::from_millis);
        let stats = LoadStats {
            elapsed: Duration::from_millis(100),
            threads: 8,
            buffered_bytes: 1 << 30,
            direct_bytes: 0,
            reading,
            blocked,
            converting,
            waiting,
        };
        stats.limit()
    }

    #[test]
    fn what_threads_spend_their_time_on() {
        assert_eq!(limit(700, 10, 0, 90), LoadLimit::Cpu);
        assert_eq!(limit(300, 10, 400, 90), LoadLimit::Cpu);
        assert_eq!(limit(500, 10, 0, 290), LoadLimit::Link);
        assert_eq!(
            limit(700, 600, 0, 90),
            LoadLimit::Disk,
            "pages that are read in"
        );
        assert_eq!(limit(300, 290, 400, 90), LoadLimit::Cpu);
    }
}
