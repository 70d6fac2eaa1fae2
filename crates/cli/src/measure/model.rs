//! Copy times that a simulated clock does not show: the threads of the express lane, and kernels that access
//! host memory over the link. Both follow from the profile.

use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::Route;

/// Computes copy times from a profile.
pub(super) struct CopyModel {
    pub(super) profile: Profile,
}

impl CopyModel {
    pub(super) fn has_express(&self) -> bool {
        self.profile.express.is_some()
    }

    /// Whether the express lane would leave copies of this size to the driver in at least one direction.
    pub(super) fn uses_driver(&self, bytes: u64) -> bool {
        let slower = |direction| {
            let driver_ns = self.profile.copy_ns(direction, HostKind::Pageable, bytes);
            let express = self.profile.express.as_ref();
            express.is_some_and(|express| express.ns(direction, bytes) >= driver_ns)
        };
        slower(Direction::HostToDevice) || slower(Direction::DeviceToHost)
    }

    /// The time of a kernel that copies over the link: its launch, then a copy of pinned memory.
    pub(super) fn mapped_ns(&self, route: Route, bytes: u64) -> u64 {
        let alone_ns = |direction| self.profile.copy_ns(direction, HostKind::Pinned, bytes);
        let (up, down) = (Direction::HostToDevice, Direction::DeviceToHost);
        let link_ns = match route {
            Route::H2d => alone_ns(up),
            Route::D2h => alone_ns(down),
            // The slower direction, slowed down by the other one.
            Route::Both => {
                let slower_ns = alone_ns(up).max(alone_ns(down));
                slower_ns.saturating_mul(self.profile.both_ways_percent) / 100
            }
        };
        self.profile.kernel.launch_ns.saturating_add(link_ns)
    }

    /// The time of the express lane, which leaves copies to the driver where that is faster.
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

    fn pcie3() -> CopyModel {
        CopyModel {
            profile: Profile::builtin("pcie3-x16").expect("built in"),
        }
    }

    #[test]
    fn mapped_memory_uses_the_link() {
        // 2 µs launch, 2.5 µs latency, 12 bytes/ns.
        assert_eq!(pcie3().mapped_ns(Route::H2d, 12_000), 5_500);
        assert_eq!(pcie3().mapped_ns(Route::Both, 12_000), 5_500);
    }

    #[test]
    fn the_express_lane_is_never_slower_than_the_driver() {
        // 120 µs latency, 11.5 bytes/ns.
        let pcie3 = pcie3();
        assert_eq!(pcie3.express_ns(Route::D2h, 1_150_000, None), 220_000);
        assert_eq!(pcie3.express_ns(Route::D2h, 1_150_000, Some(9_000)), 9_000);
        // 330 µs and 7.7 bytes/ns in both directions.
        assert_eq!(pcie3.express_ns(Route::Both, 770_000, None), 430_000);
        assert!(pcie3.uses_driver(1 << 20));
        assert!(!pcie3.uses_driver(2 << 20));
    }
}
