//! Each scenario works, under the plain schedule and under any other, and leaves nothing behind.

use pinlane::Device;
use pinlane_conformance::library::{SCENARIOS, Scenario};
use pinlane_testing::too_much_for_miri;

#[test]
fn every_scenario_works() {
    for Scenario { name, run } in SCENARIOS {
        let sim = pinlane_testing::sim();
        let device = pinlane_testing::open(&sim);
        run(&device).unwrap_or_else(|error| panic!("{name}: {error}"));
        device.synchronize().expect("the device is well");
        pinlane_testing::assert_empty(&device);
        assert_eq!(device.take_stray_errors(), [], "{name}");
        drop(device);
        assert_eq!(sim.finish(), [], "{name}");
    }
}

#[test]
fn every_scenario_works_under_any_schedule() {
    let seeds = if cfg!(miri) { 2 } else { 200 };
    for seed in 0..seeds {
        for Scenario { name, run } in SCENARIOS {
            if too_much_for_miri(name) {
                continue;
            }
            let sim = pinlane_testing::seeded(seed);
            let device = match seed % 2 {
                0 => pinlane_testing::open(&sim),
                _ => Device::open(&sim, 0).unwrap(), // uses pinned memory again
            };
            run(&device).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            device.synchronize().expect("the device is well");
            pinlane_testing::assert_empty(&device);
            drop(device);
            assert_eq!(sim.finish(), [], "{name}, seed {seed}");
        }
    }
}
