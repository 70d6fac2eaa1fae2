//! Output equals a serial computation, bit for bit: kinds, orders, chunks, widths.

use pinlane::Pod;
use pinlane::pipeline::{Pipeline, PipelineOrder};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::{assert_same, set_up};

/// Run it; the bytes are right, and so is what the run says about itself.
#[track_caller]
fn check<T: Pod + Send, O: Pod + Send>(rig: &Rig, pipeline: &Pipeline, job: Job) -> u64 {
    let what = format!("{job:?}, {:?}", pipeline.config());
    let (flow, found, expected) = job
        .run::<T, O>(rig, pipeline)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_same(&found, &expected, &what);
    assert_eq!(flow.items, job.items as u64, "{what}");
    assert!(flow.spans.is_empty(), "{what}: nothing was to be recorded");
    flow.chunks
}

/// Every kind of input to every kind of output.
fn all_kinds<T: Pod + Send, O: Pod + Send>(
    order: PipelineOrder,
    width_in: usize,
    width_out: usize,
) {
    let rig = Rig::new();
    let item_bytes = (width_in * size_of::<T>()).max(width_out * size_of::<O>());
    let mut seed = 0;
    // Chunks of one item; such that do not divide the input, and that do; larger than it.
    for chunk_items in [1, 4, 7, 1000] {
        let pipeline = rig.pipeline(config(order, chunk_items * item_bytes + item_bytes / 2));
        for items in [0, 1, 21] {
            for from in From::ALL {
                for to in To::ALL {
                    seed += 1;
                    let job = Job {
                        from,
                        to,
                        items,
                        width_in,
                        width_out,
                        seed,
                    };
                    let chunks = check::<T, O>(&rig, &pipeline, job);
                    let fewest = items.div_ceil(chunk_items) as u64;
                    match from {
                        From::Fill | From::Batches => assert!(chunks >= fewest, "{job:?}"),
                        _ => assert_eq!(chunks, fewest, "{job:?}"),
                    }
                }
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn every_kind_depth_first() {
    all_kinds::<u32, u32>(PipelineOrder::DepthFirst, 1, 1);
}

#[test]
fn every_kind_breadth_first() {
    all_kinds::<u32, u32>(PipelineOrder::BreadthFirst, 1, 1);
}

#[test]
fn every_kind_on_stage_streams() {
    all_kinds::<u32, u32>(PipelineOrder::StageStreams, 1, 1);
}

#[test]
fn results_wider_than_items() {
    all_kinds::<u8, u64>(PipelineOrder::StageStreams, 3, 2);
    all_kinds::<u8, u64>(PipelineOrder::BreadthFirst, 3, 2);
}

#[test]
fn results_narrower_than_items() {
    all_kinds::<f64, u16>(PipelineOrder::StageStreams, 2, 3);
    all_kinds::<f64, u16>(PipelineOrder::DepthFirst, 2, 3);
}

#[test]
fn every_number_of_streams_and_slots() {
    let rig = Rig::new();
    for order in ORDERS {
        for streams in 1..=5 {
            for slots in 1..=6 {
                let mut config = config(order, 40);
                (config.streams, config.slots) = (streams, slots);
                if order == PipelineOrder::BreadthFirst && slots < streams {
                    continue; // refused, see `lengths`
                }
                let pipeline = rig.pipeline(config);
                let kinds = [
                    (From::Pinned, To::Pinned),
                    (From::Pageable, To::Pageable),
                    (From::Reader, To::Writer),
                ];
                for (from, to) in kinds {
                    let job = Job {
                        from,
                        to,
                        items: 97,
                        width_in: 1,
                        width_out: 1,
                        seed: (10 * streams + slots) as u64,
                    };
                    check::<u32, u32>(&rig, &pipeline, job);
                }
            }
        }
    }
    rig.assert_clean();
}

/// An element that asks for more alignment than most.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

// SAFETY: 64 plain bytes with no gap, all of whose values are valid.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl Pod for Line {}

#[test]
fn elements_that_must_be_aligned() {
    for order in ORDERS {
        all_kinds::<Line, u8>(order, 1, 3);
        all_kinds::<u8, Line>(order, 5, 1);
    }
}

#[test]
fn chunks_that_the_express_lane_cuts_into_its_own() {
    let rig = Rig::new();
    set_up(&rig.device, 2, 2);
    for order in ORDERS {
        let pipeline = rig.pipeline(config(order, 150_000));
        for (from, to) in [
            (From::Pageable, To::Pageable),
            (From::Batches, To::Each),
            (From::Device, To::Pageable),
            (From::Pageable, To::Device),
        ] {
            let job = Job {
                from,
                to,
                items: 250_001,
                width_in: 1,
                width_out: 1,
                seed: 1,
            };
            check::<u16, u16>(&rig, &pipeline, job);
        }
    }
    rig.assert_clean();
}

#[test]
fn the_largest_chunk_takes_all_that_is_on_the_device() {
    let rig = Rig::new();
    for order in ORDERS {
        let pipeline = rig.pipeline(config(order, usize::MAX));
        let job = Job {
            from: From::Device,
            to: To::Device,
            items: 1000,
            width_in: 1,
            width_out: 2,
            seed: 3,
        };
        assert_eq!(check::<u32, u32>(&rig, &pipeline, job), 1);
    }
    rig.assert_clean();
}
