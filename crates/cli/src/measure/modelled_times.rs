//! Copy times that a simulated clock does not show, by the profile: the express lane, whose threads run on the
//! host, and kernels that access host memory over the link.

use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::Route;

const UP: Direction = Direction::HostToDevice;
const DOWN: Direction = Direction::DeviceToHost;

/// Whether the express lane would leave copies of this size to the driver in at least one direction.
pub(super) fn uses_driver(profile: &Profile, bytes: u64) -> bool {
    let Some(express) = &profile.express else {
        return false;
    };
    [UP, DOWN].into_iter().any(|direction| {
        express.ns(direction, bytes) >= profile.copy_ns(direction, HostKind::Pageable, bytes)
    })
}

/// The time of a kernel that copies over the link: its launch, then a copy of pinned memory.
pub(super) fn mapped_ns(profile: &Profile, route: Route, bytes: u64) -> u64 {
    let alone_ns = |direction| profile.copy_ns(direction, HostKind::Pinned, bytes);
    let link_ns = match route {
        Route::H2d => alone_ns(UP),
        Route::D2h => alone_ns(DOWN),
        // The slower direction, slowed down by the other one.
        Route::Both => {
            let slower_ns = alone_ns(UP).max(alone_ns(DOWN));
            slower_ns.saturating_mul(profile.both_ways_percent) / 100
        }
    };
    profile.kernel.launch_ns.saturating_add(link_ns)
}

/// The time of the express lane, which leaves copies to the driver where that is faster.
pub(super) fn express_ns(
    profile: &Profile,
    route: Route,
    bytes: u64,
    driver_ns: Option<u64>,
) -> u64 {
    let Some(express) = &profile.express else {
        return driver_ns.unwrap_or(0);
    };
    let costs = match route {
        Route::H2d => &express.up,
        Route::D2h => &express.down,
        Route::Both => &express.both,
    };
    costs.ns(bytes).min(driver_ns.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcie3() -> Profile {
        Profile::builtin("pcie3-x16").expect("built in")
    }

    #[test]
    fn mapped_memory_uses_the_link() {
        // 2 µs launch, 2.5 µs latency, 12 bytes/ns.
        assert_eq!(mapped_ns(&pcie3(), Route::H2d, 12_000), 5_500);
        assert_eq!(mapped_ns(&pcie3(), Route::Both, 12_000), 5_500);
    }

    #[test]
    fn the_express_lane_is_never_slower_than_the_driver() {
        let express_ns = |route, bytes, driver_ns| express_ns(&pcie3(), route, bytes, driver_ns);
        // 120 µs latency, 11.5 bytes/ns.
        assert_eq!(express_ns(Route::D2h, 1_150_000, None), 220_000);
        assert_eq!(express_ns(Route::D2h, 1_150_000, Some(9_000)), 9_000);
        // 330 µs and 7.7 bytes/ns in both directions.
        assert_eq!(express_ns(Route::Both, 770_000, None), 430_000);
        assert!(uses_driver(&pcie3(), 1 << 20));
        assert!(!uses_driver(&pcie3(), 2 << 20));
    }
}
