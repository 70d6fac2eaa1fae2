//! Configuration of the express lane.

use pinlane_driver::DeviceInfo;
use pinlane_kernels::can_demote;

use crate::{Error, Result, helper_threads};

/// Number of lanes, size of the ring, thresholds. The defaults were the fastest on an H200 with 16
/// cores, with never more lanes than the process has CPUs. A calibration may find better ones.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExpressConfig {
    /// Threads that work on one copy, including the caller's. With 1, the caller works alone, which
    /// makes runs on a simulated device exactly repeatable.
    pub lanes: usize,
    /// Threads that work on a copy whose elements the host converts.
    pub converting_lanes: usize,
    /// Largest single copy by the device, in bytes. A multiple of 4096, at least 64 KiB.
    pub chunk_bytes: usize,
    /// Most pinned memory of the ring, in chunks. It is pinned when it is needed.
    pub ring_chunks: usize,
    /// Copies below this size use the driver's own copy, uploads only if the stream is idle: it is as
    /// fast there.
    pub threshold_bytes: usize,
    /// The same threshold while all helpers sleep, since waking them takes a while. It is higher
    /// again by the difference of both if they have not worked for some milliseconds.
    pub threshold_asleep_bytes: usize,
}

/// More lanes than this get in each other's way before the link is saturated.
const LANES_AT_MOST: usize = 10;

/// The same for CPUs that demote what they write to the shared cache, which is more work per lane.
/// Of 16 CPUs, two stay free: a lane that waits for a CPU keeps all others waiting.
const DEMOTING_LANES_AT_MOST: usize = 14;

/// The same for copies that convert, which are limited by arithmetic.
const CONVERTING_LANES_AT_MOST: usize = 16;

macro_rules! setters {
    ($($field:ident)*) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: usize) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

impl ExpressConfig {
    /// The defaults for a device and the CPUs of this process.
    #[must_use]
    pub fn for_device(info: &DeviceInfo) -> Self {
        let cpus = match info.simulated {
            // More threads would make a simulated run depend on the host's scheduler.
            Some(_) => 1,
            None => helper_threads::helpers_at_most() + 1,
        };
        let lanes = lanes_for(cpus, can_demote());
        Self {
            lanes,
            converting_lanes: cpus.min(CONVERTING_LANES_AT_MOST),
            chunk_bytes: 8 << 20,
            ring_chunks: 12,
            threshold_bytes: if lanes < 4 { 512 << 10 } else { 256 << 10 },
            threshold_asleep_bytes: if lanes < 4 { 16 << 20 } else { 1 << 20 },
        }
    }

    setters!(
        lanes
        converting_lanes
        chunk_bytes
        ring_chunks
        threshold_bytes
        threshold_asleep_bytes
    );

    pub(crate) fn check(&self) -> Result<()> {
        let chunks_too_small = self.chunk_bytes < 64 << 10;
        let too_large = self.chunk_bytes.checked_mul(self.ring_chunks).is_none();
        let rules = [
            (self.lanes == 0, "lanes", "at least 1, the caller's"),
            (
                self.converting_lanes == 0,
                "converting_lanes",
                "at least 1, the caller's",
            ),
            (
                !self.chunk_bytes.is_multiple_of(4096) || chunks_too_small,
                "chunk_bytes",
                "a multiple of 4096, at least 65536",
            ),
            (self.ring_chunks == 0, "ring_chunks", "at least 1"),
            (
                self.threshold_asleep_bytes < self.threshold_bytes,
                "threshold_asleep_bytes",
                "no less than threshold_bytes",
            ),
            (
                too_large,
                "ring_chunks",
                "more than the address space holds",
            ),
        ];
        match rules.into_iter().find(|(broken, ..)| *broken) {
            Some((_, field, reason)) => Err(Error::InvalidConfig { field, reason }),
            None => Ok(()),
        }
    }
}

fn lanes_for(cpus: usize, can_demote: bool) -> usize {
    cpus.min(match can_demote {
        true => DEMOTING_LANES_AT_MOST,
        false => LANES_AT_MOST,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_lanes_than_cpus() {
        for cpus in 1..64 {
            for can_demote in [false, true] {
                let lanes = lanes_for(cpus, can_demote);
                assert!((1..=cpus).contains(&lanes), "{lanes} of {cpus}");
            }
        }
    }
}
