//! What one more slot brings: shapes that a plan could have, in turns.

use pinlane::model::pipeline::Shape;

use crate::rates::{show, stages};
use crate::support::{Bench, median, ms};

/// None, one and three more than the least with which nothing has to wait.
const SLOTS: [u32; 3] = [3, 4, 6];

const CHUNKS_KIB: [usize; 5] = [8192, 11_584, 12_480, 14_368, 16_384];

const TURNS: usize = 7;

pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    for (job, rounds) in bench.two_jobs()? {
        let shapes = CHUNKS_KIB.into_iter().flat_map(|kib| {
            SLOTS.map(|ring_slots| Shape {
                ring_slots,
                ..stages(kib << 10)
            })
        });
        let mut found: Vec<_> = shapes.map(|shape| (shape, Vec::new())).collect();
        for _ in 0..TURNS {
            for (shape, times) in &mut found {
                times.push(bench.measure(&job, rounds, shape)?);
            }
        }
        for (shape, times) in found {
            let each: Vec<_> = times
                .iter()
                .map(|time| format!("{:.2}", ms(*time)))
                .collect();
            println!(
                "kernel {:.2} ms/GiB, {}: median {:.2} ms of {}",
                job.kernel.ns_per_gib as f64 / 1e6,
                show(&shape),
                ms(median(times)),
                each.join(" ")
            );
        }
    }
    Ok(())
}
