//! User code that panics: the panic reaches the caller, nothing hangs, nothing is left, and the
//! pipeline works again.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane::pipeline::{Input, Output, Pipeline, PipelineOrder};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, Source, Target, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::must_return;

const ITEMS: usize = 70;
const CHUNK_ITEMS: usize = 10;
const AT: [u64; 3] = [0, 3, 6];
const PURPOSE: &str = "on purpose";

/// `run` panics, and then all is well.
fn panics(what: String, order: PipelineOrder, run: impl FnOnce(&Rig, &Pipeline) + Send + 'static) {
    must_return(move || {
        let rig = Rig::new();
        let pipeline = rig.pipeline(config(order, CHUNK_ITEMS * 4));
        let caught = catch_unwind(AssertUnwindSafe(|| run(&rig, &pipeline)));
        let panic = caught.expect_err(&what);
        assert_eq!(panic.downcast_ref(), Some(&PURPOSE), "{what}");
        let job = Job {
            from: From::Reader,
            to: To::Pageable,
            items: ITEMS,
            width_in: 1,
            width_out: 1,
            seed: 1,
        };
        let (_, found, expected) = job.run::<u32, u32>(&rig, &pipeline).expect(&what);
        assert_eq!(found, expected, "{what}");
        drop(pipeline);
        rig.assert_clean();
    });
}

#[test]
fn of_the_code_that_launches() {
    for order in ORDERS {
        for at in AT {
            for from in From::ALL {
                for to in To::ALL {
                    let what = format!("{order:?}, chunk {at}, {from:?} to {to:?}");
                    panics(what, order, move |rig, pipeline| {
                        let source = Source::new(from, &rig.device, &[1u32; ITEMS]).unwrap();
                        let mut target = Target::<u32>::new(to, &rig.device, ITEMS).unwrap();
                        let input = source.input(1, CHUNK_ITEMS, 1);
                        let ran = pipeline.run(input, target.output(1), |stage, input, output| {
                            if stage.chunk() == at {
                                std::panic::panic_any(PURPOSE);
                            }
                            stage.stream().copy_on_device(input, output)
                        });
                        ran.unwrap();
                    });
                }
            }
        }
    }
}

/// Runs an input into every kind of output.
fn of_an_input(at: u64, panicking: fn(u64) -> Input<'static, u32>) {
    for order in ORDERS {
        for to in To::ALL {
            let what = format!("{order:?}, chunk {at} to {to:?}");
            panics(what, order, move |rig, pipeline| {
                let mut target = Target::new(to, &rig.device, ITEMS).unwrap();
                let output = target.output(1);
                let ran = pipeline.run_in_place(panicking(at), output, |stage, data| {
                    rig.kernels.add(stage.stream(), 1, data)
                });
                ran.unwrap();
            });
        }
    }
}

#[test]
fn of_the_code_that_fills() {
    for at in AT {
        of_an_input(at, |at| {
            let mut chunk = 0;
            Input::fill(move |numbers: &mut [u32]| {
                if chunk == at {
                    std::panic::panic_any(PURPOSE);
                }
                chunk += 1;
                numbers.fill(1);
                Ok(numbers.len())
            })
        });
    }
}

#[test]
fn of_batches() {
    for at in AT {
        of_an_input(at, |at| {
            Input::batches((0..7).map(move |batch| {
                if batch == at {
                    std::panic::panic_any(PURPOSE);
                }
                [1u32; CHUNK_ITEMS]
            }))
        });
    }
}

#[test]
fn of_the_code_that_takes() {
    for order in ORDERS {
        for at in AT {
            for from in From::ALL {
                let what = format!("{order:?}, chunk {at}, {from:?}");
                panics(what, order, move |rig, pipeline| {
                    let source = Source::new(from, &rig.device, &[1u32; ITEMS]).unwrap();
                    let mut chunk = 0;
                    let output = Output::each(move |_: &[u32]| -> io::Result<()> {
                        if chunk == at {
                            std::panic::panic_any(PURPOSE);
                        }
                        chunk += 1;
                        Ok(())
                    });
                    let input = source.input(1, CHUNK_ITEMS, 1);
                    let ran = pipeline.run_in_place(input, output, |stage, data| {
                        rig.kernels.add(stage.stream(), 1, data)
                    });
                    ran.unwrap();
                });
            }
        }
    }
}

/// Runs an input into every kind of output, with work beside it.
fn beside_work(what: &str, kernel_panics: bool, work_panics: bool) {
    for order in ORDERS {
        for to in To::ALL {
            let what = format!("{order:?} to {to:?}, {what}");
            panics(what, order, move |rig, pipeline| {
                let words = [1u32; ITEMS];
                let mut target = Target::new(to, &rig.device, ITEMS).unwrap();
                let ran = pipeline.run_in_place_meanwhile(
                    &words[..],
                    target.output(1),
                    |stage, data| {
                        if kernel_panics && stage.chunk() == 3 {
                            std::panic::panic_any(PURPOSE);
                        }
                        rig.kernels.add(stage.stream(), 1, data)
                    },
                    || {
                        if work_panics {
                            std::panic::panic_any(PURPOSE);
                        }
                    },
                );
                ran.unwrap();
            });
        }
    }
}

#[test]
fn of_the_hosts_work() {
    beside_work("work", false, true);
}

#[test]
fn of_a_run_beside_the_hosts_work() {
    beside_work("run", true, false);
    beside_work("both", true, true);
}
