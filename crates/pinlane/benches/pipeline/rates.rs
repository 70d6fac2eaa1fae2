//! How near pipelines come to what the link can do.

use std::time::Instant;

use pinlane::model::pipeline::{Memory, PipelineOrder, Shape};
use pinlane::model::planner::{Limits, best};

use crate::support::{Bench, GIB, LEN, MIB, gb_per_s, median, ms};

pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let two_way = two_way(bench)?;
    println!(
        "plain two-way copy, pinned, 1 GiB each: {:.2} ms, {:.1} GB/s",
        ms(two_way),
        gb_per_s(2 * GIB, two_way)
    );
    let light = bench.job(LEN, 1, Memory::Pinned)?;
    let kernel_ns = bench.kernel_ns(LEN, 1)?;
    let plan = best(&light, &bench.profile, &Limits::default())?;
    for (name, shape) in [
        ("planned", plan.shape),
        ("16 MiB, a stream a stage", stages(16 * MIB)),
    ] {
        let time = bench.measure(&light, 1, &shape)?;
        println!(
            "light kernel ({:.2} ms), pinned, {name} {}: {:.2} ms, {:.3} of the two-way rate",
            kernel_ns as f64 / 1e6,
            show(&shape),
            ms(time),
            two_way.as_secs_f64() / time.as_secs_f64()
        );
    }
    let serial = serial_driver(bench)?;
    println!(
        "serial, the driver's copies of ordinary memory: {:.2} ms",
        ms(serial)
    );
    let express = bench.job(LEN, 1, Memory::Express)?;
    let plan = best(&express, &bench.profile, &Limits::default())?;
    let mut shapes = vec![("planned", plan.shape)];
    shapes.extend([16, 32, 64, 128].map(|mib| ("stages", stages(mib * MIB))));
    for (name, shape) in shapes {
        let time = bench.measure(&express, 1, &shape)?;
        println!(
            "light kernel, ordinary memory, {name} {}: {:.2} ms, {:.3} of the two-way rate, {:.2}x the serial one",
            show(&shape),
            ms(time),
            two_way.as_secs_f64() / time.as_secs_f64(),
            serial.as_secs_f64() / time.as_secs_f64()
        );
    }
    let both_ns = two_way.as_nanos() as u64 * 180 / 100;
    let rounds = bench.rounds_for(LEN, both_ns)?;
    let heavy = bench.job(LEN, rounds, Memory::Pinned)?;
    let alone_ns = bench.kernel_ns(LEN, rounds)?;
    let plan = best(&heavy, &bench.profile, &Limits::default())?;
    let time = bench.measure(&heavy, rounds, &plan.shape)?;
    println!(
        "heavy kernel ({:.2} ms), pinned, planned {}: {:.2} ms, {:+.1}% of the kernel alone",
        alone_ns as f64 / 1e6,
        show(&plan.shape),
        ms(time),
        (time.as_nanos() as f64 / alone_ns as f64 - 1.0) * 100.0
    );
    Ok(())
}

pub fn stages(chunk_bytes: usize) -> Shape {
    Shape {
        chunk_bytes: chunk_bytes as u64,
        streams: 3,
        order: PipelineOrder::StageStreams,
        ring_slots: 4,
    }
}

pub fn show(shape: &Shape) -> String {
    let mib = shape.chunk_bytes as f64 / MIB as f64;
    format!(
        "({mib:.2} MiB, {} streams, {}, {} slots)",
        shape.streams,
        shape.order.name(),
        shape.ring_slots
    )
}

/// Both directions at once, nothing else.
fn two_way(bench: &mut Bench) -> anyhow::Result<std::time::Duration> {
    let back = bench.device.alloc::<u32>(LEN)?;
    let mut times = Vec::new();
    for _ in 0..7 {
        let began = Instant::now();
        bench.device.scope(|scope| {
            scope.upload(&bench.stream, &bench.input, &mut bench.on_device)?;
            scope.download(&bench.other, &back, &mut bench.output)?;
            Ok(())
        })?;
        times.push(began.elapsed());
    }
    Ok(median(times))
}

/// One after the other, with the driver's own copies of ordinary memory.
fn serial_driver(bench: &mut Bench) -> anyhow::Result<std::time::Duration> {
    let mut times = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        bench
            .stream
            .driver_copy_to_device(&bench.pageable_in, &mut bench.on_device)?;
        bench
            .kernels
            .churn(&bench.stream, 1, &mut bench.on_device)?;
        bench
            .stream
            .driver_copy_to_host(&bench.on_device, &mut bench.pageable_out)?;
        times.push(began.elapsed());
    }
    Ok(median(times))
}
