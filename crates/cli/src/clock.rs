//! The host's clock, and the date.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pinlane_sim::Sim;

use crate::device::Backend;

/// The host's clock: this machine's, or a simulated machine's.
pub(crate) enum HostClock<'a> {
    Real(Instant),
    Simulated(&'a Sim),
}

impl<'a> HostClock<'a> {
    pub(crate) fn of(backend: &'a Backend) -> Self {
        match &backend.sim {
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

const SECONDS_PER_DAY: u64 = 86_400;

/// The current time, such as `2026-11-15 09:36:59 UTC`.
pub(crate) fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 was never set.
    utc(since.map_or(0, |since| since.as_secs()))
}

/// The current time in UTC by ISO 8601, such as `2026-11-15T09:36:59Z`.
pub(crate) fn iso_now() -> String {
    let now = utc_now();
    now.replacen(' ', "T", 1).replace(" UTC", "Z")
}

fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / SECONDS_PER_DAY, unix_s % SECONDS_PER_DAY);
    // Howard Hinnant's `civil_from_days`: years start in March, so leap days come last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (unix_s, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(unix_s), text);
        }
    }
}
