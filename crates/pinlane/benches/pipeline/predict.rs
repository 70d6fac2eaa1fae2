//! What the model said beforehand, and what it took.
//!
//! In several passes, each with a calibration of its own: a machine that is slower for a while is
//! slower for some of what is predicted and for some of what is measured. Medians of all passes are
//! compared; each calibration with the medians of what was measured in all passes; and the passes one
//! by one.

use std::time::Duration;

use pinlane::model::pipeline::{Job, Memory, PipelineOrder, Shape};
use pinlane::model::planner::predict_ns;

use crate::rates::show;
use crate::support::{Bench, GIB, MIB, median, ms};

/// None of these sizes of chunks was measured by the calibration, nor any job.
const BYTES: [usize; 3] = [96 * MIB, 380 * MIB, GIB];
const CHUNKS: [usize; 6] = [3 * MIB / 2, 3 * MIB, 6 * MIB, 12 * MIB, 24 * MIB, 48 * MIB];

const PASSES: usize = 5;

/// One job in one shape.
struct Combination {
    job: Job,
    shape: Shape,
    rounds: u32,
    predicted: Vec<Duration>,
    measured: Vec<Duration>,
}

pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let mut all = combinations(bench)?;
    for pass in 1..=PASSES {
        bench.calibrate()?;
        for each in &mut all {
            let predicted_ns = predict_ns(&each.job, &bench.profile, &each.shape)?;
            each.predicted.push(Duration::from_nanos(predicted_ns));
            let measured = bench.measure(&each.job, each.rounds, &each.shape)?;
            each.measured.push(measured);
        }
        let last = |each: &Combination| error(each.predicted[pass - 1], each.measured[pass - 1]);
        sum_up(&format!("pass {pass}"), all.iter().map(last));
        for memory in [Memory::Pinned, Memory::Express] {
            let some = all.iter().filter(|each| each.job.input == memory);
            sum_up(&format!("pass {pass}, {memory:?}"), some.map(last));
        }
    }
    for each in &all {
        println!(
            "{:5} MiB, kernel {:6.2} us + {:6.2} ms/GiB, {:?} {:60}: predicted {:7.2}, measured {:7.2} ms, {:+6.1}%",
            each.job.bytes_in / MIB as u64,
            each.job.kernel.fixed_ns as f64 / 1e3,
            each.job.kernel.ns_per_gib as f64 / 1e6,
            each.job.input,
            show(&each.shape),
            ms(median(each.predicted.clone())),
            ms(median(each.measured.clone())),
            each.error()
        );
    }
    for pass in 1..=PASSES {
        let usual =
            |each: &Combination| error(each.predicted[pass - 1], median(each.measured.clone()));
        let name = format!("calibration {pass}, medians of all passes");
        sum_up(&name, all.iter().map(usual));
    }
    for memory in [Memory::Pinned, Memory::Express] {
        let some = all.iter().filter(|each| each.job.input == memory);
        sum_up(&format!("{memory:?}"), some.map(Combination::error));
    }
    sum_up("all", all.iter().map(Combination::error));
    Ok(())
}

fn combinations(bench: &mut Bench) -> anyhow::Result<Vec<Combination>> {
    let mut all = Vec::new();
    for memory in [Memory::Pinned, Memory::Express] {
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
                    let order = PipelineOrder::ALL[(number + index) % 3];
                    let streams = match order {
                        PipelineOrder::StageStreams => 3,
                        _ => [2, 3, 5][(number / 3) % 3],
                    };
                    let shape = Shape {
                        chunk_bytes: chunk as u64,
                        streams,
                        order,
                        ring_slots: streams.max(4),
                    };
                    all.push(Combination {
                        job,
                        shape,
                        rounds,
                        predicted: Vec::new(),
                        measured: Vec::new(),
                    });
                }
            }
        }
    }
    Ok(all)
}

impl Combination {
    /// Of the medians, in percent.
    fn error(&self) -> f64 {
        error(
            median(self.predicted.clone()),
            median(self.measured.clone()),
        )
    }
}

fn error(predicted: Duration, measured: Duration) -> f64 {
    (predicted.as_secs_f64() / measured.as_secs_f64() - 1.0) * 100.0
}

fn sum_up(name: &str, errors: impl Iterator<Item = f64>) {
    let mut errors: Vec<_> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let signed = errors[errors.len() / 2];
    let mut errors: Vec<_> = errors.into_iter().map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    println!(
        "{name}: {} combinations, median error {:.1}% ({signed:+.1}%), 95th percentile {:.1}%, worst {:.1}%",
        errors.len(),
        errors[errors.len() / 2],
        errors[errors.len() * 95 / 100],
        errors[errors.len() - 1]
    );
}
