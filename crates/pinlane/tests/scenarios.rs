//! Each scenario works, under the plain schedule and under any other, and leaves nothing behind.

mod common;

use common::too_much_for_miri;
use pinlane_conformance::library::{SCENARIOS, Scenario};

#[test]
fn every_scenario_works() {
    for Scenario { name, run } in SCENARIOS {
        let sim = common::sim();
        let device = common::open(&sim);
        run(&device).unwrap_or_else(|error| panic!("{name}: {error}"));
        device.synchronize().expect("the device is well");
        common::assert_empty(&device);
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
            let sim = common::seeded(seed);
            let device = common::open(&sim);
            run(&device).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            device.synchronize().expect("the device is well");
            common::assert_empty(&device);
            drop(device);
            assert_eq!(sim.finish(), [], "{name}, seed {seed}");
        }
    }
}
