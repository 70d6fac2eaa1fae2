//! Shapes and their programs.

use pinlane_model::engine_rules::EngineKind;
use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, PlanError, Shape};
use pinlane_model::schedule::{HostSpan, HostState, Schedule, Span, schedule};
use pinlane_model::{CostCurve, Direction, Profile};

/// A link without latencies: 1 GB/s up, 2 GB/s down; calls and launches are free.
fn ideal() -> Profile {
    let mut profile = Profile::builtin("null").unwrap();
    profile.h2d.pinned = CostCurve::straight(0, 1_000_000_000);
    profile.d2h.pinned = CostCurve::straight(0, 2_000_000_000);
    profile
}

fn job(memory: Memory) -> Job {
    Job {
        bytes_in: 1 << 30,
        bytes_out: 1 << 30,
        kernel: KernelTime {
            ns_per_gib: 700_000_000,
            ..KernelTime::default()
        },
        input: memory,
        output: memory,
        host_ns_per_chunk: 0,
    }
}

fn shape(order: PipelineOrder, chunk_bytes: u64, streams: u32, ring_slots: u32) -> Shape {
    Shape {
        chunk_bytes,
        streams,
        order,
        ring_slots,
    }
}

fn run(shape: &Shape, job: &Job, profile: &Profile) -> Schedule {
    schedule(profile, &shape.program(job, profile).unwrap()).unwrap()
}

/// The spans of one stage, by chunk.
fn step(schedule: &Schedule, need: EngineKind) -> Vec<Span> {
    let mut spans: Vec<_> = schedule.spans.clone();
    spans.retain(|span| span.work.engine_kind() == need);
    spans.sort_by_key(|span| span.tag);
    spans
}

/// Van Werkhoven's formula for two copy engines: three stages that overlap except for one chunk.
fn formula_ns(up_ns: u64, kernel_ns: u64, down_ns: u64, chunks: u64) -> u64 {
    (up_ns + (kernel_ns + down_ns) / chunks)
        .max(kernel_ns + (up_ns + down_ns) / chunks)
        .max(down_ns + (up_ns + kernel_ns) / chunks)
}

#[test]
fn the_textbook_formula_holds_on_an_ideal_link() {
    for (ns_per_gib, up_rate, down_rate) in [
        (700_000_000, 1_000_000_000, 2_000_000_000),
        (1_900_000_000, 1_000_000_000, 2_000_000_000),
        (100_000_000, 4_000_000_000, 1_000_000_000),
    ] {
        let mut profile = ideal();
        profile.h2d.pinned.bytes_per_s = up_rate;
        profile.d2h.pinned.bytes_per_s = down_rate;
        let mut job = job(Memory::Pinned);
        job.kernel.ns_per_gib = ns_per_gib;
        let (up_ns, down_ns) = (
            profile.h2d.pinned.ns(job.bytes_in),
            profile.d2h.pinned.ns(job.bytes_out),
        );
        for chunks in [1, 2, 4, 16, 64, 256] {
            let chunk_bytes = job.bytes_in / chunks;
            let expected_ns = formula_ns(up_ns, ns_per_gib, down_ns, chunks);
            for order in PipelineOrder::ALL {
                let streams = if order == PipelineOrder::StageStreams {
                    3
                } else {
                    8
                };
                let shape = shape(order, chunk_bytes, streams, 8);
                let found_ns = run(&shape, &job, &profile).end_ns;
                // Each stage is rounded to the nanosecond.
                let off_ns = found_ns.abs_diff(expected_ns);
                assert!(
                    off_ns <= 3 * chunks,
                    "{order:?}, {chunks} chunks: {found_ns} for {expected_ns}"
                );
            }
        }
    }
}

#[test]
fn latencies_explain_the_difference_from_the_formula() {
    let profile = Profile::builtin("pcie3-x16").unwrap();
    let mut job = job(Memory::Pinned);
    job.kernel.ns_per_gib = 4_200_000;
    let up_ns = profile.h2d.pinned.ns(job.bytes_in);
    for chunks in [4, 16, 64] {
        let shape = shape(PipelineOrder::DepthFirst, job.bytes_in / chunks, 4, 4);
        let found_ns = run(&shape, &job, &profile).end_ns;
        let expected_ns = formula_ns(up_ns, 4_200_000, up_ns, chunks);
        let calls = profile.calls;
        let latency_ns = profile.h2d.pinned.latency_ns + profile.kernel.launch_ns;
        let latencies_ns =
            (chunks + 2) * latency_ns + 5 * (calls.submit_ns + calls.wake_ns + calls.sync_ns);
        assert!(found_ns >= expected_ns, "{chunks}");
        assert!(found_ns <= expected_ns + latencies_ns, "{chunks}");
    }
}

#[test]
fn every_order_copies_computes_and_copies_back_every_chunk() {
    for memory in [Memory::Pinned, Memory::Pageable] {
        for order in PipelineOrder::ALL {
            let profile = Profile::builtin("h200").unwrap();
            let mut job = job(memory);
            (job.bytes_in, job.bytes_out) = (1_000_003, 500_001);
            let shape = shape(order, 100_000, 3, 5);
            let schedule = run(&shape, &job, &profile);
            let (up, kernel, down) = (
                step(&schedule, EngineKind::HostToDevice),
                step(&schedule, EngineKind::Compute),
                step(&schedule, EngineKind::DeviceToHost),
            );
            assert_eq!([up.len(), kernel.len(), down.len()], [11; 3]);
            for chunk in 0..11 {
                assert_eq!(up[chunk].tag, chunk as u32);
                assert!(up[chunk].end_ns <= kernel[chunk].start_ns);
                assert!(kernel[chunk].end_ns <= down[chunk].start_ns);
            }
            let bytes = |spans: &[Span]| spans.iter().map(copied_bytes).sum::<u64>();
            assert_eq!(bytes(&up), 1_000_003);
            assert_eq!(bytes(&down), 500_001);
        }
    }
}

/// The express copies of one direction, as spans of its thread.
fn lanes(schedule: &Schedule, thread: u32) -> Vec<HostSpan> {
    let spans = schedule.host_spans.iter();
    let spans = spans.filter(|span| span.thread == thread && span.state == HostState::Working);
    spans.copied().collect()
}

#[test]
fn express_copies_precede_and_follow_the_kernel_in_every_order() {
    for order in PipelineOrder::ALL {
        let profile = Profile::builtin("h200").unwrap();
        let mut job = job(Memory::Express);
        (job.bytes_in, job.bytes_out) = (1_000_003, 500_001);
        let (slots, shape) = (5, shape(order, 100_000, 3, 5));
        let schedule = run(&shape, &job, &profile);
        let kernels = step(&schedule, EngineKind::Compute);
        let (fills, empties) = (lanes(&schedule, 1), lanes(&schedule, 2));
        assert_eq!([fills.len(), kernels.len(), empties.len()], [11; 3]);
        for chunk in 0..11 {
            assert!(fills[chunk].end_ns <= kernels[chunk].start_ns);
            assert!(kernels[chunk].end_ns <= empties[chunk].start_ns);
            if chunk >= slots {
                assert!(empties[chunk - slots].end_ns <= fills[chunk].start_ns);
            }
        }
    }
}

fn copied_bytes(span: &Span) -> u64 {
    match span.work {
        pinlane_model::schedule::Work::Copy { bytes, .. } => bytes,
        _ => 0,
    }
}

#[test]
fn a_slot_is_reused_after_its_previous_chunk() {
    let profile = Profile::builtin("h200").unwrap();
    for memory in [Memory::Pinned, Memory::Pageable] {
        for order in PipelineOrder::ALL {
            for (streams, slots) in [(3, 3), (3, 4), (3, 7), (2, 3), (1, 1)] {
                let stages = order == PipelineOrder::StageStreams;
                let streams = if stages { 3 } else { streams };
                let shape = shape(order, 1 << 24, streams, slots);
                let schedule = run(&shape, &job(memory), &profile);
                let up = step(&schedule, EngineKind::HostToDevice);
                let down = step(&schedule, EngineKind::DeviceToHost);
                for chunk in slots as usize..up.len() {
                    assert!(
                        up[chunk].start_ns >= down[chunk - slots as usize].end_ns,
                        "{memory:?}, {shape:?}, chunk {chunk}"
                    );
                }
            }
        }
    }
}

#[test]
fn device_memory_is_not_copied() {
    let profile = Profile::builtin("h200").unwrap();
    for order in PipelineOrder::ALL {
        let shape = shape(order, 1 << 24, 3, 3);
        let mut kept = job(Memory::Pinned);
        kept.output = Memory::Device;
        let schedule = run(&shape, &kept, &profile);
        assert_eq!(schedule.busy_ns(EngineKind::DeviceToHost), 0);
        assert_eq!(step(&schedule, EngineKind::HostToDevice).len(), 64);
        let mut there = job(Memory::Pinned);
        there.input = Memory::Device;
        let schedule = run(&shape, &there, &profile);
        assert_eq!(schedule.busy_ns(EngineKind::HostToDevice), 0);
        assert_eq!(step(&schedule, EngineKind::DeviceToHost).len(), 64);
        let mut nothing = job(Memory::Express);
        nothing.bytes_out = 0;
        let schedule = run(&shape, &nothing, &profile);
        assert_eq!(schedule.busy_ns(EngineKind::DeviceToHost), 0);
    }
}

#[test]
fn the_express_lane_pays_its_latency_for_each_chunk() {
    let profile = Profile::builtin("h200").unwrap();
    let express = profile.express.as_ref().unwrap();
    let mut job = job(Memory::Express);
    (job.output, job.kernel.ns_per_gib) = (Memory::Device, 0);
    for chunk_bytes in [4_u64 << 20, 64 << 20] {
        let shape = shape(PipelineOrder::DepthFirst, chunk_bytes, 3, 5);
        let chunks = (1 << 30) / chunk_bytes;
        let must_ns = chunks * express.ns(Direction::HostToDevice, chunk_bytes);
        let found_ns = run(&shape, &job, &profile).end_ns;
        // The kernel of the last chunk and the calls come last.
        assert!(
            (must_ns..must_ns + 100_000).contains(&found_ns),
            "{found_ns} for {must_ns}"
        );
    }
}

#[test]
fn both_directions_of_the_express_lane_slow_each_other() {
    let profile = Profile::builtin("h200").unwrap();
    let express = profile.express.as_ref().unwrap();
    let mut job = job(Memory::Express);
    job.kernel.ns_per_gib = 0;
    let chunk_bytes = 32_u64 << 20;
    let shape = shape(PipelineOrder::StageStreams, chunk_bytes, 3, 4);
    let each_ns = express.ns(Direction::HostToDevice, chunk_bytes);
    let found_ns = run(&shape, &job, &profile).end_ns;
    // The first copy in and the last copy out run alone; within a percent.
    let slowed_ns = 31 * express.both.ns(chunk_bytes) * 99 / 100;
    assert!(
        (slowed_ns..slowed_ns + 3 * each_ns).contains(&found_ns),
        "{found_ns} for {slowed_ns}"
    );
}

#[test]
fn serial_time_is_the_sum_of_its_stages() {
    let profile = ideal();
    let mut job = job(Memory::Pinned);
    job.bytes_out = 1 << 29;
    let schedule = schedule(&profile, &job.serial(&profile).unwrap()).unwrap();
    let (up_ns, down_ns) = ((1 << 30), (1 << 29) / 2);
    assert_eq!(schedule.end_ns, up_ns + 700_000_000 + down_ns);
}

#[test]
fn host_work_runs_beside_the_device() {
    let profile = Profile::builtin("h200").unwrap();
    let shape = shape(PipelineOrder::DepthFirst, 1 << 24, 3, 3);
    let mut busy = job(Memory::Pinned);
    busy.kernel.ns_per_gib = 0;
    let idle_ns = run(&shape, &busy, &profile).end_ns;
    busy.host_ns_per_chunk = idle_ns / 128;
    assert!(run(&shape, &busy, &profile).end_ns < idle_ns + idle_ns / 50);
    busy.host_ns_per_chunk = idle_ns / 32;
    assert!(run(&shape, &busy, &profile).end_ns > 2 * idle_ns);
}

#[test]
fn memory_is_counted_by_slots() {
    let shape = shape(PipelineOrder::DepthFirst, 1 << 20, 3, 4);
    let mut job = job(Memory::Express);
    job.bytes_out = 1 << 29;
    assert_eq!(shape.device_bytes(&job).unwrap(), (4 * 3) << 19);
    // The express lane uses at most a chunk per direction, and at most its ring.
    assert_eq!(shape.pinned_bytes(&job).unwrap(), 3 << 19);
    job.output = Memory::Pinned;
    assert_eq!(shape.pinned_bytes(&job).unwrap(), 1 << 20);
    job.bytes_in = 3 << 20;
    assert_eq!(
        shape.device_bytes(&job).unwrap() >> 20,
        3 + 3 * 512 / 3,
        "three chunks"
    );
}

#[test]
fn invalid_values_are_named() {
    let profile = Profile::builtin("h200").unwrap();
    let good = shape(PipelineOrder::DepthFirst, 1 << 20, 3, 3);
    let field = |shape: Shape, job: Job, profile: &Profile| match shape.program(&job, profile) {
        Err(PlanError::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let pinned = job(Memory::Pinned);
    let chunk = |chunk_bytes| Shape {
        chunk_bytes,
        ..good
    };
    assert_eq!(field(chunk(0), pinned, &profile), "chunk_bytes");
    assert_eq!(field(chunk(1), pinned, &profile), "chunk_bytes");
    let streams = |streams| Shape { streams, ..good };
    assert_eq!(field(streams(0), pinned, &profile), "streams");
    assert_eq!(field(streams(4), pinned, &profile), "ring_slots");
    let stages = shape(PipelineOrder::StageStreams, 1 << 20, 4, 4);
    assert_eq!(field(stages, pinned, &profile), "streams");
    let mut empty = pinned;
    empty.bytes_in = 0;
    assert_eq!(field(good, empty, &profile), "bytes_in");
    let mut slow = pinned;
    slow.bytes_in = u64::MAX;
    slow.kernel.ns_per_gib = u64::MAX;
    assert_eq!(field(chunk(1 << 60), slow, &profile), "kernel");
    let plain = Profile::builtin("null").unwrap();
    assert_eq!(field(good, job(Memory::Express), &plain), "input");
}
