//! Several threads that run the same pipeline at once.

use std::thread;

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::must_return;
use pinlane_testing::{SplitMix64, assert_same};

#[test]
fn every_thread_gets_its_own_results() {
    for order in ORDERS {
        for record in [false, true] {
            must_return(move || {
                let rig = Rig::new();
                let mut config = config(order, 200);
                config.record = record;
                let pipeline = rig.pipeline(config);
                thread::scope(|threads| {
                    for thread in 0..4 {
                        let (rig, pipeline) = (&rig, &pipeline);
                        threads.spawn(move || {
                            let mut random = SplitMix64::new(thread);
                            for _ in 0..25 {
                                let job = Job {
                                    from: From::ALL[random.index(From::ALL.len())],
                                    to: To::ALL[random.index(To::ALL.len())],
                                    items: random.index(300),
                                    width_in: 1 + random.index(3),
                                    width_out: 1 + random.index(3),
                                    seed: random.next_u64(),
                                };
                                let what = format!("{job:?}, {order:?}");
                                let ran = job.run::<u32, u16>(rig, pipeline);
                                let (_, found, expected) = ran.expect(&what);
                                assert_same(&found, &expected, &what);
                            }
                        });
                    }
                });
                drop(pipeline);
                rig.assert_clean();
            });
        }
    }
}
