//! What the clock of a simulated device does not see: the lanes' threads, and that a kernel in
//! host memory goes over the link. Both follow from the profile.

use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::Route;

/// The profile of a simulated device.
pub(super) struct Modelled {
    profile: Profile,
}

impl Modelled {
    pub(super) fn new(profile: Profile) -> Self {
        Self { profile }
    }

    /// Whether the profile knows the express lane.
    pub(super) fn has_express(&self) -> bool {
        self.profile.express.is_some()
    }

    /// Whether the express lane would leave copies of this size to the driver, in one direction at
    /// least.
    pub(super) fn is_drivers(&self, bytes: u64) -> bool {
        let slower = |direction| {
            let driver_ns = self.profile.copy_ns(direction, HostKind::Pageable, bytes);
            let express = self.profile.express.as_ref();
            express.is_some_and(|express| express.ns(direction, bytes) >= driver_ns)
        };
        slower(Direction::HostToDevice) || slower(Direction::DeviceToHost)
    }

    /// A kernel that reads or writes host memory: its launch, and the link as a copy of pinned
    /// memory has it.
    pub(super) fn mapped_ns(&self, route: Route, bytes: u64) -> u64 {
        let alone_ns = |direction| self.profile.copy_ns(direction, HostKind::Pinned, bytes);
        let (up, down) = (Direction::HostToDevice, Direction::DeviceToHost);
        let link_ns = match route {
            Route::H2d => alone_ns(up),
            Route::D2h => alone_ns(down),
            // As long as the slower one, slowed by the other.
            Route::Both => {
                let slower_ns = alone_ns(up).max(alone_ns(down));
                slower_ns.saturating_mul(self.profile.both_ways_percent) / 100
            }
        };
        self.profile.kernel.launch_ns.saturating_add(link_ns)
    }

    /// The express lane, which is the driver's own copy where that is faster.
    pub(super) fn express_ns(&self, route: Route, bytes: u64, driver_ns: Option<u64>) -> u64 {
        let Some(express) = &self.profile.express else {
            return driver_ns.unwrap_or(0);
        };
        let ns = match route {
            Route::H2d => express.up.ns(bytes),
            Route::D2h => express.down.ns(bytes),
            Route::Both => express.both.ns(bytes),
        };
        ns.min(driver_ns.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn textbook() -> Modelled {
        Modelled::new(Profile::builtin("pcie3-x16").expect("built in"))
    }

    #[test]
    fn mapped_memory_goes_over_the_link() {
        // 2 µs of launch, 2.5 µs of latency, 12 bytes a nanosecond.
        assert_eq!(textbook().mapped_ns(Route::H2d, 12_000), 5_500);
        assert_eq!(textbook().mapped_ns(Route::Both, 12_000), 5_500);
    }

    #[test]
    fn the_express_lane_is_never_slower_than_the_driver() {
        // 120 µs of latency, 11.5 bytes a nanosecond.
        let textbook = textbook();
        assert_eq!(textbook.express_ns(Route::D2h, 1_150_000, None), 220_000);
        assert_eq!(
            textbook.express_ns(Route::D2h, 1_150_000, Some(9_000)),
            9_000
        );
        // 330 µs and 7.7 bytes a nanosecond both ways.
        assert_eq!(textbook.express_ns(Route::Both, 770_000, None), 430_000);
        assert!(textbook.is_drivers(1 << 20));
        assert!(!textbook.is_drivers(2 << 20));
    }
}
