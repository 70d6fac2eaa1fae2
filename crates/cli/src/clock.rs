//! The host's clock.

use std::time::Instant;

use pinlane_sim::Sim;

use crate::device::Target;

/// The host's clock: the machine's, or that of a simulated machine.
pub(crate) enum Clock<'a> {
    Real(Instant),
    Simulated(&'a Sim),
}

impl<'a> Clock<'a> {
    /// The clock of the machine behind a device.
    pub(crate) fn of(target: &'a Target) -> Self {
        match target.sim() {
            Some(sim) => Self::Simulated(sim),
            None => Self::Real(Instant::now()),
        }
    }

    /// Nanoseconds since some moment.
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::Real(began) => u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Simulated(sim) => sim.now_ns(),
        }
    }
}
