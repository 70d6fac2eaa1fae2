//! Input larger than device memory, and than what may be pinned.

use pinlane::{Budget, Device};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, builder, config};
use pinlane_testing::must_return;
use pinlane_testing::{KIB, assert_same};

const DEVICE_BYTES: usize = 64 * KIB;
const PINNED_BYTES: usize = 32 * KIB;

#[test]
fn more_than_any_memory_but_the_hosts_holds() {
    for order in ORDERS {
        for from in [From::Pageable, From::Reader, From::Fill, From::Batches] {
            for to in [To::Pageable, To::Writer, To::Each] {
                must_return(move || {
                    let mut profile = pinlane_testing::profile();
                    profile.device.memory_bytes = DEVICE_BYTES as u64;
                    let sim = builder().profile(profile).build();
                    let budget = Budget::with_limit(PINNED_BYTES as u64);
                    let device = Device::with_budget(sim.driver(), &budget);
                    let rig = Rig::with(sim, device).expect("the kernels load");
                    let pipeline = rig.pipeline(config(order, 8 * KIB));
                    let job = Job {
                        from,
                        to,
                        items: 5 * DEVICE_BYTES / 4 + 3,
                        width_in: 1,
                        width_out: 1,
                        seed: 1,
                    };
                    let what = format!("{job:?}, {order:?}");
                    let ran = job.run::<u32, u32>(&rig, &pipeline);
                    let (flow, found, expected) =
                        ran.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_same(&found, &expected, &what);
                    assert!(flow.chunks > 40);
                    assert!(
                        rig.device.stats().device_bytes <= DEVICE_BYTES as u64,
                        "{what}"
                    );
                    assert!(budget.in_use_bytes() <= PINNED_BYTES as u64, "{what}");
                    drop(pipeline);
                    rig.assert_clean();
                });
            }
        }
    }
}
