//! Several host threads take part in a run: one submits, one hands results over, one does the host's own work.
//! On the simulator's clock they work at the same time, and in the same way every time.

use std::io;
use std::sync::mpsc;

use pinlane::pipeline::{Cause, Input, Output, Pipeline, PipelineConfig, PipelineOrder, StageKind};

use pinlane_model::pipeline::{Job, KernelTime, Memory};
use pinlane_model::planner::predict_ns;

use super::checked_job::elements;
use super::input_and_output_kinds::{From, Source, Target, To};
use super::mixing_kernel::{self, Shape};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::{must_return, pattern};

/// 50 us each way on a link of 12 GB/s, with its latency.
const CHUNK_BYTES: usize = 570_000;
const CHUNKS: usize = 6;
/// The host's part of a chunk: submitting, waking, events.
const CHUNK_HOST_NS: u64 = 40_000;

/// How long the second run takes by the simulator's clock; the first one makes the buffers.
fn time(config: &PipelineConfig, (from, to): (From, To), kernel_us: u64) -> u64 {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config.clone());
    let bytes = elements(CHUNKS * CHUNK_BYTES, 1);
    let source = Source::new(from, &rig.device, &bytes).unwrap();
    let mut target = Target::<u8>::new(to, &rig.device, bytes.len()).unwrap();
    let mut shape = Shape::new(&[1], 1);
    shape.cost_us = kernel_us;
    let mut run = || {
        if let Target::Host(To::Writer | To::Each, taken) = &mut target {
            taken.clear();
        }
        let input = match from {
            From::Batches => Input::batches(bytes.chunks(CHUNK_BYTES)),
            From::Fill => filled(&bytes),
            _ => source.input(1, CHUNK_BYTES, 1),
        };
        let began_ns = rig.sim.now_ns();
        let ran = pipeline.run(input, target.output(1), |stage, input, output| {
            mixing_kernel::launch_one(&rig.module, stage.stream(), shape, input, output)
        });
        assert_eq!(ran.expect("it flows").chunks, CHUNKS as u64);
        rig.sim.now_ns() - began_ns
    };
    run();
    let took_ns = run();
    drop((pipeline, source, target));
    rig.assert_clean();
    took_ns
}

/// Full chunks.
fn filled(mut rest: &[u8]) -> Input<'_, u8> {
    Input::fill(move |chunk: &mut [u8]| {
        let (here, later) = rest.split_at(chunk.len().min(rest.len()));
        chunk[..here.len()].copy_from_slice(here);
        rest = later;
        Ok(here.len())
    })
}

#[test]
fn handing_results_over_takes_as_long_as_pinned_memory() {
    for order in ORDERS {
        for (from, to) in [
            (From::Pinned, To::Each),
            (From::Reader, To::Each),
            (From::Fill, To::Writer),
        ] {
            let config = config(order, CHUNK_BYTES);
            let pinned_ns = time(&config, (from, To::Pinned), 60);
            let took_ns = time(&config, (from, to), 60);
            let what = format!("{order:?}, {from:?} to {to:?}: {took_ns} ns, pinned {pinned_ns}");
            assert!(took_ns <= pinned_ns + CHUNK_HOST_NS, "{what}");
            assert_eq!(time(&config, (from, to), 60), took_ns, "{what}: again");
        }
    }
}

/// How long a run takes whose chunks the host fills, each in this time, and takes.
fn time_filled(config: &PipelineConfig, kernel_us: u64, fill_us: u64) -> u64 {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config.clone());
    let mut shape = Shape::new(&[1], 1);
    shape.cost_us = kernel_us;
    let run = || {
        let mut chunks = 0;
        let input = Input::fill(|chunk: &mut [u8]| {
            chunks += 1;
            if chunks > CHUNKS {
                return Ok(0);
            }
            rig.sim.host_work(fill_us * 1000);
            Ok(chunk.len())
        });
        let output = Output::each(|_: &[u8]| Ok(()));
        let began_ns = rig.sim.now_ns();
        let ran = pipeline.run(input, output, |stage, input, output| {
            mixing_kernel::launch_one(&rig.module, stage.stream(), shape, input, output)
        });
        ran.expect("it flows");
        rig.sim.now_ns() - began_ns
    };
    run(); // makes the buffers
    run()
}

/// To the model, chunks that the host fills and takes are pinned memory, and filling is the host's time per chunk.
#[test]
fn the_model_predicts_runs_whose_chunks_the_host_fills_and_takes() {
    let profile = pinlane_testing::profile();
    let chunk_bytes = CHUNK_BYTES as u64;
    for order in ORDERS {
        let mut config = config(order, CHUNK_BYTES);
        config.streams = 3;
        let shape = pinlane_model::pipeline::Shape {
            chunk_bytes,
            streams: 3,
            order,
            ring_slots: config.slots as u32,
        };
        for (kernel_us, fill_us) in [(60, 0), (60, 100), (0, 30)] {
            let bytes = CHUNKS as u64 * chunk_bytes;
            let job = Job {
                bytes_in: bytes,
                bytes_out: bytes,
                kernel: KernelTime {
                    fixed_ns: 0,
                    ns_per_gib: ((kernel_us * 1000) << 30) / chunk_bytes,
                    ..KernelTime::default()
                },
                input: Memory::Pinned,
                output: Memory::Pinned,
                host_ns_per_chunk: fill_us * 1000,
            };
            let predicted_ns = predict_ns(&job, &profile, &shape).unwrap();
            let took_ns = time_filled(&config, kernel_us, fill_us);
            let what = format!("{order:?}, kernel {kernel_us} us, fill {fill_us} us");
            let what = format!("{what}: {took_ns} ns, predicted {predicted_ns}");
            let off_ns = took_ns.abs_diff(predicted_ns);
            assert!(off_ns * 100 <= predicted_ns * 3, "{what}");
        }
    }
}

/// The second snippet of README's pipelines.
#[test]
fn the_batches_of_the_readme_are_saved_while_later_ones_are_on_the_device() {
    for batch in [4096, 1 << 19] {
        let rig = Rig::new();
        // Whether helper threads are awake must not decide how a batch is copied.
        let mut express = rig.device.express_config();
        express.lanes = 1;
        express.threshold_asleep_bytes = express.threshold_bytes;
        rig.device.set_express_config(express).unwrap();
        let pipeline = rig.pipeline(PipelineConfig::default());
        let mut pinned = rig.device.pinned::<u32>(10 * batch).unwrap();
        let mut run = |to_pinned: bool| {
            let batches = Input::batches((0..10).map(|number| vec![number; batch]));
            let save = |done: &[u32]| {
                assert_eq!(done.len(), batch);
                Ok(())
            };
            let output = match to_pinned {
                true => Output::from(&mut pinned),
                false => Output::each(save),
            };
            let began_ns = rig.sim.now_ns();
            let ran = pipeline.run_in_place(batches, output, |stage, chunk| {
                rig.kernels.add(stage.stream(), 1, chunk)
            });
            assert_eq!(ran.expect("it flows").chunks, 10);
            rig.sim.now_ns() - began_ns
        };
        run(true);
        run(false);
        let (pinned_ns, each_ns) = (run(true), run(false));
        assert!(
            each_ns <= pinned_ns + CHUNK_HOST_NS,
            "{batch}: {each_ns}, pinned {pinned_ns}"
        );
        drop((pipeline, pinned));
        rig.assert_clean();
    }
}

/// A run of pinned memory through a light kernel, with this much work for the host.
fn run_with_work(rig: &Rig, pipeline: &Pipeline, to: To, work_ns: u64) -> u64 {
    let input = rig
        .device
        .pinned_from(&elements(CHUNKS * CHUNK_BYTES, 2))
        .unwrap();
    let mut target = Target::<u8>::new(to, &rig.device, input.len()).unwrap();
    let began_ns = rig.sim.now_ns();
    let ran = pipeline.run_in_place_meanwhile(
        &input,
        target.output(1),
        |_, _| Ok(()),
        || {
            let work_began_ns = rig.sim.now_ns();
            assert_eq!(work_began_ns, began_ns, "work starts at once");
            rig.sim.host_work(work_ns);
        },
    );
    let (flow, ()) = ran.expect("it flows");
    assert_eq!(flow.chunks, CHUNKS as u64);
    rig.sim.now_ns() - began_ns
}

#[test]
fn the_hosts_work_is_done_beside_the_run() {
    // With few slots, submitting waits for results that were handed over.
    for (order, to, slots) in [
        (PipelineOrder::StageStreams, To::Pinned, 3),
        (PipelineOrder::StageStreams, To::Each, 1),
        (PipelineOrder::DepthFirst, To::Each, 1),
        (PipelineOrder::BreadthFirst, To::Writer, 2),
    ] {
        let rig = Rig::new();
        let mut config = config(order, CHUNK_BYTES);
        config.slots = slots;
        let pipeline = rig.pipeline(config);
        let run = |work_ns| run_with_work(&rig, &pipeline, to, work_ns);
        run(0); // makes the buffers
        let alone_ns = run(0);
        let what = format!("{order:?} to {to:?}, {slots} slots, {alone_ns} ns");
        for work_ns in [alone_ns / 2, alone_ns] {
            assert_eq!(run(work_ns), alone_ns, "{what}: work is free");
        }
        assert_eq!(run(2 * alone_ns), 2 * alone_ns, "{what}: the run is free");
        drop(pipeline);
        rig.assert_clean();
    }
}

/// Work that uses the device by itself is on the same timeline.
#[test]
fn the_hosts_work_may_use_the_device() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, CHUNK_BYTES));
    let pinned = |bytes, seed| {
        rig.device
            .pinned_from(&elements::<u8>(bytes, seed))
            .unwrap()
    };
    let (input, own) = (pinned(CHUNKS * CHUNK_BYTES, 2), pinned(CHUNK_BYTES, 3));
    let mut on_device = rig.device.alloc::<u8>(CHUNK_BYTES).unwrap();
    let stream = rig.device.stream().unwrap();
    let mut run = || {
        let (began_ns, before) = (rig.sim.now_ns(), rig.sim.timeline().len());
        let mut taken = 0;
        let output = Output::each(|chunk: &[u8]| {
            taken += chunk.len();
            Ok(())
        });
        let work = || -> pinlane::Result<()> {
            for _ in 0..5 {
                rig.sim.host_work(70_000);
                rig.device.scope(|scope| {
                    scope.upload(&stream, &own, &mut on_device)?;
                    Ok(())
                })?;
            }
            Ok(())
        };
        let ran = pipeline.run_in_place_meanwhile(&input, output, |_, _| Ok(()), work);
        ran.expect("it flows").1.expect("it works");
        assert_eq!(taken, input.len());
        let spans = rig.sim.timeline().split_off(before).into_iter();
        let spans = spans.map(|span| {
            (
                span.stream,
                span.start_ns - began_ns,
                span.end_ns - began_ns,
            )
        });
        spans.collect::<Vec<_>>()
    };
    run(); // makes buffers and events
    let timeline = run();
    for _ in 0..20 {
        assert_eq!(timeline, run(), "the same on every run");
    }
    drop((pipeline, input, own, on_device, stream));
    rig.assert_clean();
}

#[test]
fn work_may_wait_for_the_results() {
    let sums = must_return(|| {
        let rig = Rig::new();
        let mut config = config(PipelineOrder::StageStreams, 100);
        config.slots = 1;
        let pipeline = rig.pipeline(config);
        let (send, sums) = mpsc::channel();
        let input = pattern(1000, 1);
        let output =
            Output::each(move |chunk: &[u8]| send.send(chunk.len()).map_err(io::Error::other));
        // Ends only when the sender is gone. The simulator cannot know that this thread is blocked.
        let work = || sums.into_iter().sum::<usize>();
        let ran = pipeline.run_in_place_meanwhile(&input[..], output, |_, _| Ok(()), work);
        ran.unwrap().1
    });
    assert_eq!(sums, 1000);
}

#[test]
fn each_batch_may_wait_for_the_result_of_the_last() {
    must_return(|| {
        let rig = Rig::new();
        let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 400));
        let (send, results) = mpsc::channel();
        let batches = (0..10u32).map(|number| {
            if number > 0 {
                assert_eq!(results.recv(), Ok(number));
            }
            vec![number; 100]
        });
        let output = Output::each(move |done: &[u32]| send.send(done[0]).map_err(io::Error::other));
        let ran = pipeline.run_in_place(Input::batches(batches), output, |stage, data| {
            rig.kernels.add(stage.stream(), 1, data)
        });
        assert_eq!(ran.unwrap().chunks, 10);
        drop(pipeline);
        rig.assert_clean();
    });
}

/// The error of a run is returned once the host's work is done, too.
#[test]
fn a_run_fails_beside_the_hosts_work() {
    for order in ORDERS {
        must_return(move || {
            let rig = Rig::new();
            let pipeline = rig.pipeline(config(order, 100));
            let input = pattern(10_000, 2);
            let output = Output::each(|_: &[u8]| Err(io::Error::other("full")));
            let mut worked = false;
            let work = || {
                rig.sim.host_work(1_000_000);
                worked = true;
            };
            let ran = pipeline.run_in_place_meanwhile(&input[..], output, |_, _| Ok(()), work);
            let error = ran.unwrap_err();
            assert_eq!(error.place, Some((0, StageKind::Write)), "{error}");
            assert!(matches!(error.cause, Cause::Io(_)));
            assert!(worked);
            drop(pipeline);
            rig.assert_clean();
        });
    }
}

#[test]
fn an_invalid_run_does_not_begin_the_hosts_work() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 100));
    let (input, mut output) = (pattern(10, 1), [0u8; 9]);
    let ran =
        pipeline.run_in_place_meanwhile(&input[..], &mut output[..], |_, _| Ok(()), || panic!());
    assert_eq!(ran.unwrap_err().place, None);
    drop(pipeline);
    rig.assert_clean();
}
