//! The best shape for a job.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, PlanError, Shape};
use pinlane_model::planner::{Advice, Limits, Plan, Resource, best, predict_ns};
use pinlane_model::schedule::schedule;

const GIB: u64 = 1 << 30;

fn job(memory: Memory, kernel_ns_per_gib: u64) -> Job {
    Job {
        bytes_in: GIB,
        bytes_out: GIB,
        kernel: KernelTime {
            ns_per_gib: kernel_ns_per_gib,
            ..KernelTime::default()
        },
        input: memory,
        output: memory,
        host_ns_per_chunk: 0,
    }
}

fn plan(job: &Job, profile: &str, limits: Limits) -> Plan {
    let profile = Profile::builtin(profile).unwrap();
    best(job, &profile, &limits).unwrap()
}

/// The duration of the complete program.
fn exact_ns(job: &Job, profile: &Profile, shape: &Shape) -> u64 {
    let program = shape.program(job, profile).unwrap();
    schedule(profile, &program).unwrap().end_ns
}

fn alternative(plan: &Plan, name: &str) -> u64 {
    let mut all = plan.alternatives.iter();
    let found = all.find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).ns
}

#[test]
fn the_plan_matches_its_own_schedule() {
    for name in ["pcie3-x16", "pcie4-x16", "pcie5-x16", "h200"] {
        let profile = Profile::builtin(name).unwrap();
        for memory in [Memory::Pinned, Memory::Express, Memory::Pageable] {
            let job = job(memory, 4_200_000);
            let plan = plan(&job, name, Limits::default());
            let exact_ns = exact_ns(&job, &profile, &plan.shape);
            let off_ns = exact_ns.abs_diff(plan.predicted_ns);
            assert!(off_ns * 200 < exact_ns, "{name}, {memory:?}");
            if job.bytes_in.div_ceil(plan.shape.chunk_bytes) <= 512 {
                assert_eq!(plan.predicted_ns, exact_ns);
                assert_eq!(plan.schedule.end_ns, exact_ns);
            }
        }
    }
}

#[test]
fn no_alternative_is_better() {
    for name in ["pcie3-x16", "h200"] {
        let profile = Profile::builtin(name).unwrap();
        for (memory, kernel) in [
            (Memory::Pinned, 800_000),
            (Memory::Pinned, 38_600_000),
            (Memory::Express, 4_200_000),
            (Memory::Pageable, 4_200_000),
        ] {
            let job = job(memory, kernel);
            let plan = plan(&job, name, Limits::default());
            for other in &plan.alternatives {
                let pinned_for_nothing = other.name == "serial, pinned";
                assert!(
                    other.ns + other.ns / 100 >= plan.predicted_ns || pinned_for_nothing,
                    "{name}, {memory:?}: {} for {}",
                    other.name,
                    plan.predicted_ns
                );
            }
            for (order, streams, slots) in [
                (PipelineOrder::DepthFirst, 2, 4),
                (PipelineOrder::DepthFirst, 4, 6),
                (PipelineOrder::DepthFirst, 7, 9),
                (PipelineOrder::BreadthFirst, 3, 5),
                (PipelineOrder::StageStreams, 3, 5),
            ] {
                for chunk_bytes in [1 << 20, 3 << 20, 5_000_000, 10 << 20, 33 << 20, 200 << 20] {
                    let shape = Shape {
                        chunk_bytes,
                        streams,
                        order,
                        ring_slots: slots,
                    };
                    let ns = predict_ns(&job, &profile, &shape).unwrap();
                    assert!(
                        ns + ns / 66 >= plan.predicted_ns,
                        "{name}, {memory:?}: {shape:?} takes {ns}, {:?} {}",
                        plan.shape,
                        plan.predicted_ns
                    );
                }
            }
        }
    }
}

#[test]
fn many_chunks_are_predicted_within_half_a_percent() {
    for name in ["pcie3-x16", "h200"] {
        let profile = Profile::builtin(name).unwrap();
        for memory in [Memory::Pinned, Memory::Express, Memory::Pageable] {
            for kernel in [0, 60_000_000] {
                let job = job(memory, kernel);
                for (order, streams, ring_slots) in [
                    (PipelineOrder::DepthFirst, 1, 1),
                    (PipelineOrder::DepthFirst, 3, 3),
                    (PipelineOrder::DepthFirst, 7, 9),
                    (PipelineOrder::BreadthFirst, 5, 7),
                    (PipelineOrder::StageStreams, 3, 4),
                ] {
                    for chunk_bytes in [300_001, 700_000] {
                        let shape = Shape {
                            chunk_bytes,
                            streams,
                            order,
                            ring_slots,
                        };
                        let found_ns = predict_ns(&job, &profile, &shape).unwrap();
                        let exact_ns = exact_ns(&job, &profile, &shape);
                        let off_ns = found_ns.abs_diff(exact_ns);
                        assert!(
                            off_ns * 200 < exact_ns,
                            "{name}, {memory:?}, {shape:?}: {found_ns} for {exact_ns}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn all_alternatives_are_listed() {
    let plan = plan(&job(Memory::Pinned, 4_200_000), "h200", Limits::default());
    let serial_ns = alternative(&plan, "serial, pinned");
    assert!(alternative(&plan, "serial, pageable") > 4 * serial_ns);
    assert!(serial_ns > plan.predicted_ns * 3 / 2);
    for name in [
        "depth-first",
        "breadth-first",
        "stage streams",
        "half the chunk",
        "twice the chunk",
    ] {
        let ns = alternative(&plan, name);
        assert!(ns + ns / 100 >= plan.predicted_ns, "{name}");
    }
}

#[test]
fn among_equal_plans_fewer_streams_win() {
    let profile = Profile::builtin("h200").unwrap();
    let job = job(Memory::Pinned, 4_200_000);
    let plan = plan(&job, "h200", Limits::default());
    let mut others = plan.alternatives.iter();
    let depth_first = others.find(|other| other.name == "depth-first").unwrap();
    let shape = depth_first.shape.unwrap();
    let with = |streams| {
        let shape = Shape {
            streams,
            ring_slots: streams,
            ..shape
        };
        predict_ns(&job, &profile, &shape).unwrap()
    };
    assert!(with(shape.streams - 1) > depth_first.ns);
    // One more is one more to wait for.
    assert_eq!(
        with(shape.streams + 1),
        depth_first.ns + profile.calls.sync_ns
    );
}

#[test]
fn stage_streams_win_if_nearly_equal() {
    let plan = plan(&job(Memory::Pinned, 4_200_000), "h200", Limits::default());
    assert_eq!(plan.shape.order, PipelineOrder::StageStreams);
    let two = Limits {
        streams_at_most: 2,
        ..Limits::default()
    };
    let plan = self::plan(&job(Memory::Pinned, 4_200_000), "h200", two);
    assert_ne!(plan.shape.order, PipelineOrder::StageStreams);
}

#[test]
fn the_bottleneck_is_the_busiest_resource() {
    let found = |job: &Job| {
        let plan = plan(job, "h200", Limits::default());
        (
            plan.bottleneck.resource,
            plan.advice,
            plan.bottleneck.busy_permille,
        )
    };
    let (part, advice, busy) = found(&job(Memory::Pinned, 800_000));
    assert!(matches!(
        part,
        Resource::HostToDevice | Resource::DeviceToHost
    ));
    assert_eq!(advice, Advice::NothingLinkIsFull);
    assert!(busy > 950, "{busy}");

    let (part, advice, busy) = found(&job(Memory::Pinned, 60_000_000));
    assert_eq!(part, Resource::Compute);
    assert!(busy > 950, "{busy}");
    assert!(matches!(advice, Advice::FasterKernel { saves_ns } if saves_ns > 30_000_000));

    let (part, advice, _) = found(&job(Memory::Pageable, 800_000));
    assert_eq!(part, Resource::Host);
    assert!(matches!(advice, Advice::Pin { saves_ns } if saves_ns > 100_000_000));

    let (part, advice, _) = found(&job(Memory::Express, 800_000));
    assert_eq!(part, Resource::Staging);
    assert!(matches!(advice, Advice::Pin { .. }));

    let mut busy_host = job(Memory::Pinned, 0);
    (busy_host.bytes_in, busy_host.bytes_out) = (1 << 16, 0);
    busy_host.host_ns_per_chunk = 1_000_000;
    assert_eq!(found(&busy_host).0, Resource::Host);

    let mut tiny = job(Memory::Pinned, 0);
    (tiny.bytes_in, tiny.bytes_out) = (4096, 4096);
    assert_eq!(found(&tiny).0, Resource::Latency);
}

#[test]
fn limits_are_kept_and_their_cost_is_reported() {
    let job = job(Memory::Pinned, 4_200_000);
    let free = plan(&job, "h200", Limits::default());
    let two = plan(
        &job,
        "h200",
        Limits {
            streams_at_most: 1,
            ..Limits::default()
        },
    );
    assert_eq!(two.shape.streams, 1);
    assert!(matches!(two.advice, Advice::MoreStreams { saves_ns }
        if saves_ns > (two.predicted_ns - free.predicted_ns) / 2));
    let device_bytes = 3 << 20;
    let small = plan(
        &job,
        "h200",
        Limits {
            device_bytes,
            ..Limits::default()
        },
    );
    assert!(small.shape.device_bytes(&job).unwrap() <= device_bytes);
    assert!(matches!(small.advice, Advice::LargerChunks { .. }));
    let pinned_bytes = 4 << 20;
    let express = Job {
        input: Memory::Express,
        ..job
    };
    let limits = Limits {
        pinned_bytes,
        ..Limits::default()
    };
    let ringed = plan(&express, "h200", limits);
    assert!(ringed.shape.pinned_bytes(&express).unwrap() <= pinned_bytes);
}

#[test]
fn limits_apply_to_chosen_shapes() {
    let job = job(Memory::Express, 0);
    let shape = Shape {
        chunk_bytes: 1 << 20,
        streams: 4,
        order: PipelineOrder::DepthFirst,
        ring_slots: 6,
    };
    let limits = Limits {
        device_bytes: 12 << 20,
        pinned_bytes: 2 << 20,
        streams_at_most: 4,
    };
    assert_eq!(limits.check(&job, &shape), Ok(()));
    let field = |limits: Limits, shape: Shape| match limits.check(&job, &shape) {
        Err(PlanError::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let more = |streams| Shape { streams, ..shape };
    assert_eq!(field(limits, more(5)), "streams");
    assert_eq!(field(limits, more(0)), "streams");
    let device_bytes = (12 << 20) - 1;
    assert_eq!(
        field(
            Limits {
                device_bytes,
                ..limits
            },
            shape
        ),
        "device_bytes"
    );
    let pinned_bytes = (2 << 20) - 1;
    assert_eq!(
        field(
            Limits {
                pinned_bytes,
                ..limits
            },
            shape
        ),
        "pinned_bytes"
    );
    let chunk_bytes = 0;
    assert_eq!(
        field(
            limits,
            Shape {
                chunk_bytes,
                ..shape
            }
        ),
        "chunk_bytes"
    );
}

#[test]
fn jobs_of_any_size_have_a_plan() {
    for bytes_in in [1, 5, 4096, 300_000, GIB - 1, 1 << 40, 1 << 50] {
        for (input, output) in [
            (Memory::Pinned, Memory::Pinned),
            (Memory::Device, Memory::Express),
            (Memory::Pageable, Memory::Device),
            (Memory::Device, Memory::Device),
        ] {
            let job = Job {
                bytes_in,
                bytes_out: bytes_in / 3,
                input,
                output,
                ..job(Memory::Pinned, 1_000_000)
            };
            let plan = plan(&job, "h200", Limits::default());
            assert!(plan.predicted_ns > 0);
            assert!(plan.shape.chunk_bytes <= bytes_in);
        }
    }
    // A profile on which everything is free.
    let plan = plan(&job(Memory::Pinned, 0), "null", Limits::default());
    assert_eq!(plan.predicted_ns, 0);
}

#[test]
fn invalid_values_are_named() {
    let profile = Profile::builtin("h200").unwrap();
    let field = |job: Job, limits: Limits| match best(&job, &profile, &limits) {
        Err(PlanError::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let good = job(Memory::Pinned, 1);
    let free = Limits::default();
    assert_eq!(
        field(
            Job {
                bytes_in: 0,
                ..good
            },
            free
        ),
        "bytes_in"
    );
    let streams_at_most = 0;
    assert_eq!(
        field(
            good,
            Limits {
                streams_at_most,
                ..free
            }
        ),
        "streams_at_most"
    );
    let device_bytes = 100;
    assert_eq!(
        field(
            good,
            Limits {
                device_bytes,
                ..free
            }
        ),
        "device_bytes"
    );
    let pinned_bytes = 100;
    let express = job(Memory::Express, 1);
    assert_eq!(
        field(
            express,
            Limits {
                pinned_bytes,
                ..free
            }
        ),
        "pinned_bytes"
    );
    let mut endless = good;
    endless.kernel.fixed_ns = u64::MAX;
    assert_eq!(field(endless, free), "kernel");
    endless.kernel.fixed_ns = u64::MAX / 4;
    assert!(matches!(
        best(&endless, &profile, &free),
        Ok(_) | Err(PlanError::Schedule(_))
    ));
}

#[test]
fn alternatives_keep_to_the_limits() {
    for device_bytes in [48 << 20, 200 << 20, GIB] {
        let limits = Limits {
            device_bytes,
            ..Limits::default()
        };
        for memory in [Memory::Pinned, Memory::Express] {
            let mut job = job(memory, 4_200_000);
            job.bytes_out = 0;
            let plan = plan(&job, "h200", limits);
            let shapes = plan.alternatives.iter().filter_map(|it| it.shape);
            for shape in shapes.chain([plan.shape]) {
                assert_eq!(limits.check(&job, &shape), Ok(()), "{shape:?}");
            }
        }
    }
}

#[test]
fn no_ring_has_more_slots_than_the_job_has_chunks() {
    for bytes_in in [1 << 10, 3 << 20, GIB] {
        let mut job = job(Memory::Express, 4_200_000);
        (job.bytes_in, job.bytes_out) = (bytes_in, 0);
        let shape = plan(&job, "h200", Limits::default()).shape;
        let chunks = bytes_in.div_ceil(shape.chunk_bytes);
        let needed = chunks.max(shape.streams.into());
        assert!(u64::from(shape.ring_slots) <= needed, "{shape:?}");
    }
}

/// Copies of a real device are sometimes late; with a spare slot the other direction continues.
#[test]
fn stage_streams_have_a_spare_slot_if_limits_allow() {
    let (job, profile) = (
        job(Memory::Pinned, 4_200_000),
        Profile::builtin("h200").unwrap(),
    );
    let roomy = plan(&job, "h200", Limits::default());
    assert_eq!(roomy.shape.order, PipelineOrder::StageStreams);
    let fewer = Shape {
        ring_slots: roomy.shape.ring_slots - 1,
        ..roomy.shape
    };
    let fewer_ns = predict_ns(&job, &profile, &fewer).unwrap();
    assert_eq!(fewer_ns, roomy.predicted_ns, "the model needs one less");
    let tight = Limits {
        device_bytes: fewer.device_bytes(&job).unwrap(),
        ..Limits::default()
    };
    assert!(plan(&job, "h200", tight).shape.device_bytes(&job).unwrap() <= tight.device_bytes);
}
