//! The host's clock.

use std::time::{Duration, Instant};

use pinlane_sim::Sim;

use crate::device::Backend;

/// The host's clock: this machine's, or a simulated machine's.
pub(crate) enum HostClock<'a> {
    Real(Instant),
    Simulated(&'a Sim),
}

impl<'a> HostClock<'a> {
    pub(crate) fn of(backend: &'a Backend) -> Self {
        match backend.sim() {
            Some(sim) => Self::Simulated(sim),
            None => Self::Real(Instant::now()),
        }
    }

    /// Nanoseconds since an arbitrary start.
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::Real(start) => duration_ns(start.elapsed()),
            Self::Simulated(sim) => sim.now_ns(),
        }
    }

    /// Keeps the CPU busy for this long.
    pub(crate) fn spin(&self, ns: u64) {
        match self {
            Self::Real(_) => {
                let end = Instant::now() + Duration::from_nanos(ns);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Simulated(sim) => sim.host_work(ns),
        }
    }
}

pub(crate) fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
