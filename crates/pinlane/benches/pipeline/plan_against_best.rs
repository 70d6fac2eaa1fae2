//! The planner's choice against the best of all.

use std::time::Instant;

use pinlane::model::pipeline::{PipelineOrder, Shape};
use pinlane::model::planner::{Limits, best};

use crate::rates::show;
use crate::support::{Bench, MIB, median, ms};

/// Of the sweep, how many are measured again, and how often.
const FINALISTS: usize = 8;
const TURNS: usize = 7;

pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    for (job, rounds) in bench.two_jobs()? {
        let began = Instant::now();
        let plan = best(&job, &bench.profile, &Limits::default())?;
        let took = began.elapsed();
        let mut found = Vec::new();
        for order in PipelineOrder::ALL {
            for mib in [1, 2, 4, 8, 16, 32, 64] {
                for streams in [2, 3, 4, 8] {
                    if order == PipelineOrder::StageStreams && streams != 3 {
                        continue;
                    }
                    let shape = Shape {
                        chunk_bytes: (mib * MIB) as u64,
                        streams,
                        order,
                        ring_slots: streams.max(4),
                    };
                    found.push((bench.measure(&job, rounds, &shape)?, shape));
                }
            }
        }
        found.sort_by_key(|(time, _)| *time);
        // The best of many is also the luckiest: the first of them and the plan take turns.
        let mut shapes = vec![plan.shape];
        shapes.extend(found.iter().take(FINALISTS).map(|(_, shape)| *shape));
        let mut times = vec![Vec::new(); shapes.len()];
        for _ in 0..TURNS {
            for (shape, times) in shapes.iter().zip(&mut times) {
                times.push(bench.measure(&job, rounds, shape)?);
            }
        }
        let times: Vec<_> = times.into_iter().map(median).collect();
        let planned = times[0];
        let finalists = times.iter().zip(&shapes).skip(1);
        let (best, shape) = finalists.min_by_key(|(time, _)| **time).expect("some");
        println!(
            "kernel {:.2} ms/GiB: planned in {:.2} ms {}: predicted {:.2}, measured {:.2} ms; best of {} {}: {:.2} ms; the plan is {:+.1}% off",
            job.kernel.ns_per_gib as f64 / 1e6,
            ms(took),
            show(&plan.shape),
            plan.predicted_ns as f64 / 1e6,
            ms(planned),
            found.len(),
            show(shape),
            ms(*best),
            (planned.as_secs_f64() / best.as_secs_f64() - 1.0) * 100.0
        );
    }
    Ok(())
}
