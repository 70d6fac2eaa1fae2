//! Kernels that put their results where their input was.

use pinlane::Error;
use pinlane::pipeline::{Cause, Output};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::assert_same;

#[test]
fn every_kind_in_every_order() {
    let rig = Rig::new();
    let mut seed = 0;
    for order in ORDERS {
        for chunk_items in [1, 4, 7, 1000] {
            let pipeline = rig.pipeline(config(order, chunk_items * 12));
            for from in From::ALL {
                for to in To::ALL {
                    for items in [0, 1, 21] {
                        seed += 1;
                        let job = Job {
                            from,
                            to,
                            items,
                            width_in: 3,
                            width_out: 3,
                            seed,
                        };
                        let ran = job.run_in_place(&rig, &pipeline);
                        let (flow, found, expected) =
                            ran.unwrap_or_else(|error| panic!("{job:?}: {error}"));
                        assert_same(&found, &expected, &format!("{job:?}, {order:?}"));
                        assert_eq!(flow.items, items as u64);
                    }
                }
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn items_of_input_and_output_must_be_as_wide() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(ORDERS[0], 100));
    let mut output = [0u32; 8];
    let output = Output::from(&mut output[..]).wide(2);
    let ran = pipeline.run_in_place(&[1u32; 8][..], output, |_, _| Ok(()));
    let error = ran.expect_err("4 items of 2 from 8 of 1");
    assert!(error.place.is_none());
    assert!(matches!(
        error.cause,
        Cause::Pinlane(Error::InvalidConfig {
            field: "output",
            ..
        })
    ));
    drop(pipeline);
    rig.assert_clean();
}

#[test]
fn device_memory_that_is_only_read_stays_as_it_was() {
    let rig = Rig::new();
    let words: Vec<u32> = (0..100).collect();
    let stream = rig.device.stream().unwrap();
    let mut source = rig.device.alloc::<u32>(100).unwrap();
    stream.copy_to_device(&words, &mut source).unwrap();
    let mut target = rig.device.alloc::<u32>(100).unwrap();
    for order in ORDERS {
        let pipeline = rig.pipeline(config(order, 64));
        pipeline
            .run_in_place(&source, &mut target, |stage, data| {
                rig.kernels.add(stage.stream(), 7, data)
            })
            .unwrap();
        assert_eq!(stream.copy_to_vec(&source).unwrap(), words);
        let added: Vec<u32> = words.iter().map(|word| word + 7).collect();
        assert_eq!(stream.copy_to_vec(&target).unwrap(), added);
    }
    drop((source, target, stream));
    rig.assert_clean();
}
