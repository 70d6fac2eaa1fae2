//! Speed of the model itself; printed, not asserted.
//! `cargo test --release -p pinlane-model --test model_speed -- --ignored --nocapture`

use std::time::Instant;

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, Shape};
use pinlane_model::planner::{Limits, best};
use pinlane_model::schedule::schedule;

fn job(memory: Memory) -> Job {
    Job {
        bytes_in: 1 << 30,
        bytes_out: 1 << 30,
        kernel: KernelTime {
            ns_per_gib: 4_200_000,
            ..KernelTime::default()
        },
        input: memory,
        output: memory,
        host_ns_per_chunk: 0,
    }
}

/// Fastest of several runs, in microseconds.
fn best_us(mut work: impl FnMut()) -> u128 {
    let runs = (0..20).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_micros()
    });
    runs.min().unwrap_or(0)
}

#[test]
#[ignore = "prints figures of this machine"]
fn figures() {
    let profile = Profile::builtin("h200").unwrap();
    for order in PipelineOrder::ALL {
        let shape = Shape {
            chunk_bytes: (1 << 30) / 3_334 + 1,
            streams: 3,
            order,
            ring_slots: 4,
        };
        let program = shape.program(&job(Memory::Pinned), &profile).unwrap();
        let submits = schedule(&profile, &program).unwrap().spans.len();
        let us = best_us(|| drop(schedule(&profile, &program).unwrap()));
        println!("{}: {submits} submits, {us} us", order.name());
    }
    for memory in [Memory::Pinned, Memory::Express, Memory::Pageable] {
        for name in ["h200", "pcie3-x16"] {
            let profile = Profile::builtin(name).unwrap();
            let (job, limits) = (job(memory), Limits::default());
            let plan = best(&job, &profile, &limits).unwrap();
            let us = best_us(|| drop(best(&job, &profile, &limits).unwrap()));
            let (shape, ns) = (plan.shape, plan.predicted_ns);
            println!("{name}, {memory:?}: {us} us for {shape:?}, {ns} ns");
            println!("    {:?} {:?}", plan.bottleneck, plan.advice);
            for other in plan.alternatives {
                println!("    {:20} {:>12} {:?}", other.name, other.ns, other.shape);
            }
        }
    }
}
