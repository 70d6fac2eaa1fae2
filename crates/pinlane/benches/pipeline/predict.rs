//! What the model said beforehand, and what it took.

use pinlane_model::pipeline::{Memory, Order, Shape};
use pinlane_model::search::predict_ns;

use crate::bench::{Bench, GIB, MIB, ms};
use crate::rates::show;

/// None of these sizes of chunks was measured by the calibration, nor any job.
const BYTES: [usize; 3] = [96 * MIB, 380 * MIB, GIB];
const CHUNKS: [usize; 6] = [3 * MIB / 2, 3 * MIB, 6 * MIB, 12 * MIB, 24 * MIB, 48 * MIB];

pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for memory in [Memory::Pinned, Memory::Express] {
        let mut errors = Vec::new();
        let mut number = 0;
        for bytes in BYTES {
            let len = bytes / 4;
            // In nanoseconds for each MiB: light, a third of a copy, a copy, two copies.
            for (index, ns_per_mib) in [0, 6_000, 19_000, 40_000].into_iter().enumerate() {
                let rounds = match ns_per_mib {
                    0 => 1,
                    _ => bench.rounds_for(len, (bytes / MIB) as u64 * ns_per_mib)?,
                };
                let job = bench.job(len, rounds, memory)?;
                for (turn, each) in CHUNKS.into_iter().enumerate() {
                    number += 1;
                    // Ordinary memory: chunks that the express lane is made for.
                    let chunk = match memory {
                        Memory::Pinned => each,
                        _ if turn < 3 => continue,
                        _ => each * 2,
                    };
                    let order = Order::ALL[(number + index) % 3];
                    let streams = match order {
                        Order::StageStreams => 3,
                        _ => [2, 3, 5][(number / 3) % 3],
                    };
                    let shape = Shape {
                        chunk_bytes: chunk as u64,
                        streams,
                        order,
                        ring_slots: streams.max(4),
                    };
                    let predicted = predict_ns(&job, &bench.profile, &shape)? as f64 / 1e6;
                    let measured = ms(bench.measure(&job, rounds, &shape)?);
                    let error = (predicted / measured - 1.0) * 100.0;
                    println!(
                        "{:5} MiB, kernel {:6.2} us + {:6.2} ms/GiB, {memory:?} {:60}: predicted {predicted:7.2}, measured {measured:7.2} ms, {error:+6.1}%",
                        bytes / MIB,
                        job.kernel.fixed_ns as f64 / 1e3,
                        job.kernel.ns_per_gib as f64 / 1e6,
                        show(&shape)
                    );
                    errors.push(error.abs());
                }
            }
        }
        sum_up(&format!("{memory:?}"), &mut errors);
        all.append(&mut errors);
    }
    sum_up("all", &mut all);
    Ok(())
}

fn sum_up(name: &str, errors: &mut [f64]) {
    errors.sort_by(f64::total_cmp);
    println!(
        "{name}: {} combinations, median error {:.1}%, 95th percentile {:.1}%, worst {:.1}%",
        errors.len(),
        errors[errors.len() / 2],
        errors[errors.len() * 95 / 100],
        errors[errors.len() - 1]
    );
}
