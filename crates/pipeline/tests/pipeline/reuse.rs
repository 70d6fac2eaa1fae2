//! Buffers stay with a pipeline between runs, until it is told to give them back.

use pinlane::pipeline::Pipeline;
use pinlane_driver::Call;

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};

/// Calls that make memory.
const MAKING: [Call; 4] = [
    Call::DeviceAlloc,
    Call::DeviceAllocAsync,
    Call::HostAlloc,
    Call::HostRegister,
];

fn job(from: From, to: To) -> Job {
    Job {
        from,
        to,
        items: 205,
        width_in: 2,
        width_out: 1,
        seed: 1,
    }
}

#[test]
fn the_second_run_makes_no_buffer() {
    for order in ORDERS {
        for from in [From::Pageable, From::Reader, From::Batches, From::Fill] {
            for to in [To::Pageable, To::Writer, To::Each] {
                for in_place in [false, true] {
                    let (rig, trap) = Rig::trapped();
                    let pipeline = rig.pipeline(config(order, 160));
                    let run = |rig: &Rig, pipeline: &Pipeline| {
                        let job = match in_place {
                            true => Job {
                                width_out: 2,
                                ..job(from, to)
                            },
                            false => job(from, to),
                        };
                        let ran = match in_place {
                            true => job.run_in_place(rig, pipeline),
                            false => job.run::<u32, u32>(rig, pipeline),
                        };
                        let (_, found, expected) = ran.expect("it flows");
                        assert_eq!(found, expected);
                    };
                    run(&rig, &pipeline);
                    let (before, after) = (rig.device.stats(), {
                        trap.watch();
                        run(&rig, &pipeline);
                        let calls = trap.calls();
                        trap.disarm();
                        let made = calls.iter().filter(|call| MAKING.contains(call)).count();
                        let what = format!("{order:?}, {from:?} to {to:?}, in place: {in_place}");
                        assert_eq!(made, 0, "{what}");
                        rig.device.stats()
                    });
                    assert_eq!(before, after, "nothing more, nothing less");
                    drop(pipeline);
                    rig.assert_clean();
                }
            }
        }
    }
}

#[test]
fn trim_gives_everything_back_and_the_next_run_works() {
    let rig = Rig::new();
    let empty = rig.device.stats();
    let pipeline = rig.pipeline(config(ORDERS[2], 160));
    for _ in 0..2 {
        job(From::Reader, To::Writer)
            .run::<u32, u32>(&rig, &pipeline)
            .unwrap();
        assert!(rig.device.stats().device_bytes > 0, "kept for the next run");
        assert!(rig.device.stats().pinned_bytes > 0, "kept for the next run");
        pipeline.trim();
        rig.device.synchronize().unwrap();
        assert_eq!(rig.device.stats(), empty);
    }
    drop(pipeline);
    rig.assert_clean();
}

#[test]
fn jobs_of_other_sizes_do_not_pile_buffers_up() {
    let rig = Rig::new();
    let mut setup = config(ORDERS[2], 4096);
    setup.slots = 2;
    let pipeline = rig.pipeline(setup);
    for round in 0..20 {
        let width_in = 1 + round * 7 % 20;
        let job = Job {
            width_in,
            width_out: 1 + round * 3 % 20,
            items: 3000,
            ..job(From::Reader, To::Each)
        };
        let (_, found, expected) = job.run::<u32, u32>(&rig, &pipeline).unwrap();
        assert_eq!(found, expected);
        // Two of the input and two of the output, each at most twice as large as asked for.
        rig.device.synchronize().unwrap();
        let stats = rig.device.stats();
        assert!(stats.device_bytes <= 2 * 2 * 2 * 4096, "{stats:?}");
        assert!(stats.pinned_bytes <= 2 * 2 * 2 * 4096, "{stats:?}");
    }
    drop(pipeline);
    rig.assert_clean();
}
