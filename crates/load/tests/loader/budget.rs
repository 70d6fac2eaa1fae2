//! Little pinned memory, and none.

use pinlane::load::LoaderError;
use pinlane::{Budget, Device, Error};

use super::support::{Made, Rig, config, drain};
use pinlane_testing::{must_return, sim};

const PAGE: u64 = 4096;

#[test]
fn a_small_budget_gives_fewer_slots() {
    for pages in [1, 2, 3, 10] {
        for workers in [0, 1, 4] {
            must_return(move || {
                let sim = sim();
                let budget = Budget::with_limit(pages * PAGE);
                let device = Device::with_budget(sim.driver(), &budget);
                let rig = Rig::with(sim, device);
                let loader = rig.loader(Made::new(40), config(4, workers));
                for batch in loader.epoch(0).expect("no epoch is running") {
                    batch.expect("it goes on with what there is");
                }
                assert!(rig.device.stats().pinned_bytes <= pages.min(4) * PAGE);
                drop(loader);
                rig.assert_nothing_pinned();
                rig.device.synchronize().expect("the device is alive");
            });
        }
    }
}

#[test]
fn no_slot_is_an_error() {
    for workers in [0, 1, 3] {
        must_return(move || {
            let sim = sim();
            let device = Device::with_budget(sim.driver(), &Budget::with_limit(1));
            let rig = Rig::with(sim, device);
            let loader = rig.loader(Made::new(40), config(4, workers));
            for _ in 0..2 {
                let first = loader.epoch(0).expect("no epoch is running").next();
                let error = first.expect("an error").expect_err("no memory");
                let text = error.to_string();
                let field = "; field `tokens` reserves its limit of 7 U16 for each of 4 samples";
                assert!(text.ends_with(field), "{text}");
                let LoaderError::Device {
                    batch: 0, error, ..
                } = error
                else {
                    panic!("{error:?}");
                };
                assert!(matches!(error, Error::OverBudget { .. }), "{error}");
            }
            drop(loader);
            rig.assert_clean();
        });
    }
}

#[test]
fn pinned_bytes_limits_the_loader() {
    let rig = Rig::new();
    let mut config = config(4, 2);
    config.pinned_bytes = 1;
    let loader = rig.loader(Made::new(40), config);
    let (batches, error) = drain(&rig, loader.epoch(0).expect("no epoch is running"));
    assert!(batches.len() == 10 && error.is_none());
    drop(loader);
    rig.assert_clean();
}
