//! A simulated machine, measured, gives back the profile that it was made from.

use pinlane::Device;
use pinlane::calibrate::calibrate;
use pinlane_model::{CostCurve, Profile};
use pinlane_sim::Sim;

fn measured(made_from: Profile) -> (Profile, Profile) {
    let sim = Sim::builder()
        .profile(made_from.clone())
        .checks(false)
        .build();
    let device = Device::open(&sim, 0).unwrap();
    let found = calibrate(&device, &|| sim.now_ns()).unwrap();
    drop(device);
    pinlane_testing::assert_clean(&sim);
    (made_from, found)
}

#[track_caller]
fn assert_near(what: &str, found: u64, must: u64, permille: u64, slack: u64) {
    let allowed = must * permille / 1000 + slack;
    assert!(
        found.abs_diff(must) <= allowed,
        "{what}: {found}, must be near {must}"
    );
}

fn assert_curves(what: &str, found: &CostCurve, must: &CostCurve) {
    for bytes in [0, 4096, 100_000, 1 << 20, 5 << 20, 32 << 20, 1 << 30] {
        let what = format!("{what} of {bytes} bytes");
        assert_near(&what, found.ns(bytes), must.ns(bytes), 10, 100);
    }
}

#[test]
fn the_profile_is_found_again() {
    for (name, switch_ns) in [("pcie3-x16", 0), ("pcie5-x16", 3_000)] {
        let mut must = Profile::builtin(name).unwrap();
        must.device.switch_ns = switch_ns;
        let (must, found) = measured(must);
        assert_curves("h2d.pinned", &found.h2d.pinned, &must.h2d.pinned);
        assert_curves("d2h.pinned", &found.d2h.pinned, &must.d2h.pinned);
        assert_curves("h2d.pageable", &found.h2d.pageable, &must.h2d.pageable);
        assert_curves("d2h.pageable", &found.d2h.pageable, &must.d2h.pageable);
        let near = |what, found, must| assert_near(what, found, must, 10, 20);
        near("both ways", found.both_ways_percent, must.both_ways_percent);
        near("launch", found.kernel.launch_ns, must.kernel.launch_ns);
        assert_near(
            "kernel",
            found.kernel.bytes_per_s,
            must.kernel.bytes_per_s,
            20,
            0,
        );
        assert_near("d2d", found.d2d_bytes_per_s, must.d2d_bytes_per_s, 20, 0);
        near(
            "hand-over",
            found.device.handover_ns,
            must.device.handover_ns,
        );
        near("switch", found.device.switch_ns, must.device.switch_ns);
        near("submit", found.calls.submit_ns, must.calls.submit_ns);
        near("event", found.calls.event_ns, must.calls.event_ns);
        near("query", found.calls.query_ns, must.calls.query_ns);
        near("sync", found.calls.sync_ns, must.calls.sync_ns);
        near("wake", found.calls.wake_ns, must.calls.wake_ns);
        let pairs = [
            ("alloc", found.host_memory.alloc, must.host_memory.alloc),
            ("free", found.host_memory.free, must.host_memory.free),
            (
                "register",
                found.host_memory.register,
                must.host_memory.register,
            ),
            (
                "unregister",
                found.host_memory.unregister,
                must.host_memory.unregister,
            ),
        ];
        for (what, found, must) in pairs {
            assert_near(what, found.ns(100 << 20), must.ns(100 << 20), 20, 1000);
        }
        assert_eq!(found.device.memory_bytes, must.device.memory_bytes);
        assert_eq!(found.device.pci, must.device.pci);
    }
}

#[test]
fn a_device_on_which_nothing_takes_time_gives_a_profile_or_an_error() {
    let sim = Sim::new(Profile::builtin("null").unwrap());
    let device = Device::open(&sim, 0).unwrap();
    match calibrate(&device, &|| sim.now_ns()) {
        Ok(profile) => profile.validate().unwrap(),
        Err(error) => assert!(
            error.to_string().contains("do not yield a valid profile"),
            "{error}"
        ),
    }
}
