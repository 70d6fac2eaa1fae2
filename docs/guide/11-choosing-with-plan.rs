//! The model finds the best chunk, streams and order for a job, and the pipeline uses them.

use pinlane::model::Profile;
use pinlane::model::pipeline::{Job, KernelTime, Memory};
use pinlane::model::planner::{Limits, best};
use pinlane::pipeline::{Pipeline, PipelineConfig};
use pinlane::{Builtin, Device, Result};

const LEN: usize = 16 << 20; // 64 MiB

fn main() -> Result<()> {
    let profile = Profile::builtin("h200").expect("a built-in profile");
    let job = Job {
        bytes_in: 4 * LEN as u64,
        bytes_out: 4 * LEN as u64,
        kernel: KernelTime {
            fixed_ns: 5_000,
            ns_per_gib: 1_000_000,
            ..KernelTime::default()
        },
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    };
    let plan = best(&job, &profile, &Limits::default()).expect("a plan");
    let shape = plan.shape;
    println!(
        "{} streams, {}, chunks of {} KiB",
        shape.streams,
        shape.order,
        shape.chunk_bytes >> 10
    );
    println!("predicted {:.2} ms", plan.predicted_ns as f64 / 1e6);

    let device = Device::sim("h200")?;
    let kernels = Builtin::load(&device)?;
    let pipeline = Pipeline::new(&device, PipelineConfig::planned(&shape, 4)?.record(true))?;
    let input = device.pinned_from(&vec![1u32; LEN])?;
    let mut output = device.pinned::<u32>(LEN)?;
    let summary = pipeline.run_in_place(&input, &mut output, |stage, chunk| {
        kernels.add(stage.stream(), 1, chunk)
    })?;
    let took_ns = summary.spans.last().map_or(0, |span| span.end_ns);
    println!(
        "{} chunks took {:.2} ms",
        summary.chunks,
        took_ns as f64 / 1e6
    );
    Ok(())
}
