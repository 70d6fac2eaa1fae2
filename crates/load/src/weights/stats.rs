//! Statistics of a load, and what limited its speed.

use std::fmt;
use std::time::Duration;

use super::RankSharing;
use crate::Shard;

/// Statistics of a load. Times are sums over all threads, except `elapsed`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LoadStats {
    /// From allocating device memory, with the files open, to the arrival of the last byte.
    pub elapsed: Duration,
    /// Reader threads.
    pub threads: usize,
    /// The rank of this process among those of its machine.
    pub local_rank: Shard,
    /// How ranks of one machine share the files.
    pub sharing: RankSharing,
    /// Bytes read through the page cache.
    pub buffered_bytes: u64,
    /// Bytes read directly.
    pub direct_bytes: u64,
    /// Time spent reading.
    pub reading: Duration,
    /// Part of `reading` that threads spent blocked on the disk (or waiting for a CPU).
    pub blocked: Duration,
    /// Time spent converting.
    pub converting: Duration,
    /// Time spent waiting for the link, with all slots in flight.
    pub waiting: Duration,
}

/// What limited the speed of a load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LoadLimit {
    /// The disk: threads waited for reads.
    Disk,
    /// The CPU: threads copied from the page cache, or converted.
    Cpu,
    /// The link: threads waited for copies to the device.
    Link,
}

impl LoadStats {
    /// Bytes read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.buffered_bytes + self.direct_bytes
    }

    /// Speed in 10^9 file bytes per second.
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        self.bytes() as f64 / self.elapsed.as_nanos().max(1) as f64
    }

    /// What limited the speed: what threads spent most of their time on.
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

/// CPU time of the calling thread; 0 if the system has no such clock.
pub(super) fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let ns = time.tv_nsec.unsigned_abs() as u32;
    Duration::new(time.tv_sec.unsigned_abs(), ns)
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

    #[test]
    fn limit_is_where_threads_spend_their_time() {
        for (reading, blocked, converting, waiting, limit) in [
            (700, 10, 0, 90, LoadLimit::Cpu),
            (300, 10, 400, 90, LoadLimit::Cpu),
            (500, 10, 0, 290, LoadLimit::Link),
            (700, 600, 0, 90, LoadLimit::Disk), // page faults
            (300, 290, 400, 90, LoadLimit::Cpu),
        ] {
            let stats = LoadStats {
                reading: Duration::from_millis(reading),
                blocked: Duration::from_millis(blocked),
                converting: Duration::from_millis(converting),
                waiting: Duration::from_millis(waiting),
                ..LoadStats::default()
            };
            assert_eq!(stats.limit(), limit, "{stats:?}");
        }
    }
}
