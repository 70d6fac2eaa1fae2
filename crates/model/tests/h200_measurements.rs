//! Predictions of the H200 profile against measurements: 1 GiB in, a kernel, 1 GiB out, pinned.
//! Prints a table with `--nocapture`.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, Shape};
use pinlane_model::schedule::schedule;

const MIB: u64 = 1 << 20;

fn job(kernel_ms: f64) -> Job {
    Job {
        bytes_in: 1 << 30,
        bytes_out: 1 << 30,
        kernel: KernelTime {
            ns_per_gib: (kernel_ms * 1e6) as u64,
            ..KernelTime::default()
        },
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    }
}

fn shape(order: PipelineOrder, chunk_mib: u64, streams: u32) -> Shape {
    Shape {
        chunk_bytes: chunk_mib * MIB,
        streams,
        order,
        ring_slots: streams,
    }
}

/// The prediction in milliseconds; serial if there is no shape.
fn model_ms(job: &Job, shape: Option<Shape>) -> f64 {
    let profile = Profile::builtin("h200").unwrap();
    let program = match shape {
        Some(shape) => shape.program(job, &profile).unwrap(),
        None => job.serial(&profile).unwrap(),
    };
    schedule(&profile, &program).unwrap().end_ns as f64 / 1e6
}

#[test]
fn predicted_overlap_is_within_five_percent_of_measured() {
    let depth_first = |streams| Some(shape(PipelineOrder::DepthFirst, 16, streams));
    let stages = Some(shape(PipelineOrder::StageStreams, 16, 3));
    let mut worst: f64 = 0.0;
    for (kernel_ms, rows) in [
        (
            0.8,
            vec![
                ("serial", None, 39.6),
                ("2 streams", depth_first(2), 22.4),
                ("3 streams", depth_first(3), 22.1),
                ("8 streams", depth_first(8), 22.3),
                ("one stream a stage", stages, 21.7),
            ],
        ),
        (
            4.2,
            vec![
                ("serial", None, 43.0),
                ("2 streams", depth_first(2), 24.0),
                ("3 streams", depth_first(3), 22.2),
                ("8 streams", depth_first(8), 22.4),
            ],
        ),
        (
            38.6,
            vec![
                ("serial", None, 77.3),
                ("2 streams", depth_first(2), 40.4),
                ("3 streams", depth_first(3), 39.2),
                ("8 streams", depth_first(8), 39.2),
            ],
        ),
    ] {
        for (name, shape, measured_ms) in rows {
            let ms = model_ms(&job(kernel_ms), shape);
            let off_percent = (ms / measured_ms - 1.0) * 100.0;
            println!(
                "kernel {kernel_ms:4} ms, {name:18} {ms:6.2} ms, measured {measured_ms:5.1}: {off_percent:+.1}%"
            );
            worst = worst.max(off_percent.abs());
        }
    }
    assert!(worst < 5.0, "{worst}");
}

#[test]
fn chunks_that_are_too_small_or_too_large_cost_a_few_percent() {
    let ms = |chunk_mib| {
        model_ms(
            &job(0.8),
            Some(shape(PipelineOrder::DepthFirst, chunk_mib, 3)),
        )
    };
    let (small, best, large) = (ms(4), ms(16), ms(128));
    println!("4 MiB {small:.2}, 16 MiB {best:.2}, 128 MiB {large:.2} ms");
    assert!(small > best * 1.01 && small < best * 1.08, "measured: 5%");
    assert!(large > best * 1.05 && large < best * 1.12, "measured: 8%");
}
