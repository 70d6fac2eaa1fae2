//! Less memory than the slots would take: fewer will do, as long as there is one.

use pinlane::pipeline::{Cause, PipelineError, PipelineOrder, StageKind};
use pinlane::{Budget, Device, Error};
use pinlane_driver::ErrorKind;

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, builder, config};
use pinlane_testing::must_return;

const PAGE_BYTES: usize = 4096;

/// Chunks of one page, 11 of them.
fn job(from: From, to: To) -> Job {
    Job {
        from,
        to,
        items: 11 * PAGE_BYTES / 4 - 5,
        width_in: 1,
        width_out: 1,
        seed: 1,
    }
}

/// Run with so many pages that may be pinned.
fn with_pages(order: PipelineOrder, kinds: (From, To), pages: usize) -> Result<(), PipelineError> {
    must_return(move || {
        let sim = builder().build();
        let budget = Budget::with_limit((pages * PAGE_BYTES) as u64);
        let device = Device::with_budget(sim.driver(), &budget);
        let rig = Rig::with(sim, device).expect("the kernels load");
        let pipeline = rig.pipeline(config(order, PAGE_BYTES));
        let mut outcome = Ok(());
        for _ in 0..2 {
            outcome = job(kinds.0, kinds.1).run::<u32, u32>(&rig, &pipeline).map(
                |(_, found, expected)| {
                    assert_eq!(found, expected, "{order:?}, {kinds:?}, {pages} pages");
                },
            );
            assert!(budget.in_use_bytes() <= (pages * PAGE_BYTES) as u64);
        }
        drop(pipeline);
        rig.assert_clean();
        assert_eq!(budget.in_use_bytes(), 0);
        outcome
    })
}

#[test]
fn few_pages_that_may_be_pinned() {
    for order in ORDERS {
        for pages in 2..8 {
            for kinds in [(From::Reader, To::Writer), (From::Fill, To::Each)] {
                with_pages(order, kinds, pages)
                    .unwrap_or_else(|error| panic!("{order:?}, {pages} pages: {error}"));
            }
        }
        // One end needs none.
        for pages in 1..4 {
            for kinds in [(From::Reader, To::Device), (From::Device, To::Writer)] {
                with_pages(order, kinds, pages)
                    .unwrap_or_else(|error| panic!("{order:?}, {pages} pages: {error}"));
            }
        }
        with_pages(order, (From::Device, To::Device), 0).expect("nothing is pinned");
    }
}

#[test]
fn too_few_pages_for_one_chunk() {
    for order in ORDERS {
        let refused = |kinds, pages, stage| {
            let error = with_pages(order, kinds, pages).expect_err("too little");
            assert_eq!(error.place, Some((0, stage)), "{order:?}: {error}");
            let cause = &error.cause;
            assert!(
                matches!(cause, Cause::Pinlane(Error::OverBudget { .. })),
                "{order:?}: {error}"
            );
            error.to_string()
        };
        let text = refused((From::Reader, To::Writer), 0, StageKind::Upload);
        let start = "chunk 0, upload: pinning 4.0 KiB goes over the budget: 0 bytes of 0 bytes are";
        assert!(text.starts_with(start), "{text}");
        let text = refused((From::Reader, To::Writer), 1, StageKind::Download);
        let start = "chunk 0, download: pinning 4.0 KiB goes over the budget: 4.0 KiB of 4.0 KiB";
        assert!(text.starts_with(start), "{text}");
        refused((From::Device, To::Each), 0, StageKind::Download);
    }
}

/// Run with room for so many chunks on the device.
fn with_room(order: PipelineOrder, kinds: (From, To), chunks: usize) -> Result<(), PipelineError> {
    must_return(move || {
        let mut profile = pinlane_testing::profile();
        profile.device.memory_bytes = (chunks * PAGE_BYTES) as u64;
        let rig = Rig::on(builder().profile(profile));
        let pipeline = rig.pipeline(config(order, PAGE_BYTES));
        let mut outcome = Ok(());
        for _ in 0..2 {
            outcome = job(kinds.0, kinds.1).run::<u32, u32>(&rig, &pipeline).map(
                |(_, found, expected)| {
                    assert_eq!(found, expected, "{order:?}, {kinds:?}, {chunks} chunks");
                },
            );
        }
        drop(pipeline);
        // Buffers that could not be made and were not missed.
        for error in rig.device.take_stray_errors() {
            let short = ErrorKind::OutOfMemory;
            assert!(
                matches!(&error, Error::Driver(error) if error.kind == short),
                "{error}"
            );
        }
        rig.assert_clean();
        outcome
    })
}

#[test]
fn room_for_few_chunks_on_the_device() {
    for order in ORDERS {
        for kinds in [
            (From::Reader, To::Writer),
            (From::Pageable, To::Pageable),
            (From::Batches, To::Pinned),
        ] {
            // Each chunk takes two: one for the input, one for the output.
            let at_least = match order {
                PipelineOrder::BreadthFirst => 2, // its group
                _ => 1,
            };
            for chunks in 1..8 {
                let ran = with_room(order, kinds, chunks);
                if chunks >= 2 * at_least {
                    ran.unwrap_or_else(|error| panic!("{order:?}, {kinds:?}, {chunks}: {error}"));
                    continue;
                }
                let error = ran.expect_err("too little");
                let place = Some((chunks as u64 / 2, StageKind::Upload));
                assert_eq!(
                    error.place, place,
                    "{order:?}, {kinds:?}, {chunks}: {error}"
                );
                assert!(
                    matches!(&error.cause, Cause::Pinlane(Error::Driver(error))
                        if matches!(error.kind, ErrorKind::OutOfMemory)),
                    "{order:?}, {kinds:?}, {chunks}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_short_input_needs_no_room_for_a_second_chunk() {
    for order in ORDERS {
        let mut profile = pinlane_testing::profile();
        profile.device.memory_bytes = 2 * PAGE_BYTES as u64;
        let rig = Rig::on(builder().profile(profile));
        let pipeline = rig.pipeline(config(order, PAGE_BYTES));
        let job = Job {
            items: 1000,
            ..job(From::Pageable, To::Pageable)
        };
        let (flow, found, expected) = job.run::<u32, u32>(&rig, &pipeline).unwrap();
        assert_eq!((flow.chunks, found), (1, expected), "{order:?}");
        drop(pipeline);
        rig.assert_clean();
    }
}
