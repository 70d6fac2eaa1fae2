//! Ways to do a job: planned, synchronous, or on several streams.

use anyhow::ensure;
use pinlane::Result;
use pinlane::model::pipeline::{Job, PipelineOrder, Shape};
use pinlane::model::planner::predict_ns;
use pinlane::model::schedule::schedule;
use pinlane::model::{Profile, median};
use pinlane::pipeline::{Pipeline, PipelineConfig};

use crate::job::{MIB, Rig};
use crate::kernel::KernelKind;

/// Counted runs of each way, after one that allocates.
const TURNS: usize = 7;

/// Chunks of each stream.
const CHUNKS_PER_STREAM: [u64; 4] = [1, 2, 4, 8];

pub enum Way {
    Synchronous,
    Piped(Shape),
}

/// The plan, then all others.
pub fn all(job: &Job, planned: Shape) -> Vec<Way> {
    let mut ways = vec![Way::Piped(planned), Way::Synchronous];
    for streams in [2, 4] {
        for order in [PipelineOrder::DepthFirst, PipelineOrder::BreadthFirst] {
            for per_stream in CHUNKS_PER_STREAM {
                let chunks = u64::from(streams) * per_stream;
                ways.push(Way::Piped(Shape {
                    chunk_bytes: job.bytes_in.div_ceil(chunks).next_multiple_of(4),
                    streams,
                    order,
                    ring_slots: streams * 2,
                }));
            }
        }
    }
    ways
}

impl Way {
    pub fn name(&self, job: &Job) -> String {
        match self {
            Self::Synchronous => "synchronous".to_owned(),
            Self::Piped(shape) => format!(
                "{}, {} streams, {} slots, {} x {:.2} MiB",
                shape.order,
                shape.streams,
                shape.ring_slots,
                job.bytes_in.div_ceil(shape.chunk_bytes),
                shape.chunk_bytes as f64 / MIB as f64
            ),
        }
    }

    pub fn predict_ns(&self, job: &Job, profile: &Profile) -> anyhow::Result<u64> {
        Ok(match self {
            Self::Synchronous => schedule(profile, &job.serial(profile)?)?.end_ns,
            Self::Piped(shape) => predict_ns(job, profile, shape)?,
        })
    }
}

/// Median time of each way; all take turns.
pub fn measure(
    rig: &mut Rig,
    kind: KernelKind,
    rounds: u32,
    job: &Job,
    ways: &[Way],
) -> anyhow::Result<Vec<u64>> {
    let pipelines = ways.iter().map(|way| match way {
        Way::Synchronous => Ok(None),
        Way::Piped(shape) => {
            let config = PipelineConfig::planned(shape, size_of::<u32>())?;
            Pipeline::new(&rig.device, config).map(Some)
        }
    });
    let pipelines = pipelines.collect::<Result<Vec<_>>>()?;
    let len = (job.bytes_in / 4) as usize;
    let mut times = vec![Vec::new(); ways.len()];
    let mut expected = None;
    for turn in 0..=TURNS {
        for (pipeline, times) in pipelines.iter().zip(&mut times) {
            let began_ns = (rig.clock)();
            match pipeline {
                None => synchronous(rig, kind, rounds, len)?,
                Some(pipeline) => piped(rig, pipeline, kind, rounds, len)?,
            }
            let ns = (rig.clock)() - began_ns;
            if turn > 0 {
                times.push(ns);
                continue;
            }
            // Each way has the same result.
            let sum = checksum(&rig.output[..len]);
            ensure!(*expected.get_or_insert(sum) == sum, "the results differ");
            rig.output[..len].fill(1);
        }
    }
    Ok(times.into_iter().map(median).collect())
}

/// Of some elements, wherever a chunk may begin.
fn checksum(words: &[u32]) -> u64 {
    let some = words.iter().step_by(61);
    some.fold(0, |sum: u64, word| {
        sum.wrapping_mul(31).wrapping_add(u64::from(*word))
    })
}

fn piped(
    rig: &mut Rig,
    pipeline: &Pipeline,
    kind: KernelKind,
    rounds: u32,
    len: usize,
) -> anyhow::Result<()> {
    let kernels = &rig.kernels;
    pipeline.run_in_place(
        rig.input.range(..len),
        rig.output.range_mut(..len),
        |stage, data| kind.launch(kernels, stage.stream(), rounds, data),
    )?;
    Ok(())
}

fn synchronous(rig: &mut Rig, kind: KernelKind, rounds: u32, len: usize) -> Result<()> {
    let stream = &rig.stream;
    rig.device.scope(|scope| {
        let up = scope.upload(
            stream,
            rig.input.range(..len),
            rig.on_device.range_mut(..len),
        )?;
        up.wait()?;
        let data = rig.on_device.range_mut(..len);
        kind.launch(&rig.kernels, stream, rounds, data)?;
        stream.synchronize()?;
        let down = scope.download(
            stream,
            rig.on_device.range(..len),
            rig.output.range_mut(..len),
        )?;
        down.wait()?;
        Ok(())
    })
}
