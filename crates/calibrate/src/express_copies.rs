//! The express lane. Not measured on a simulated device, whose clock does not see host threads.

use std::ops::Range;

use pinlane_model::ExpressCosts;

use super::fit::curve;
use super::timing_harness::{Bench, MIB};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{Error, Result};
use pinlane_pipeline::{Pipeline, PipelineConfig};

/// Knots of the curves, with the number of chunks in a short and in a long pipeline: enough that both use
/// up the lead of the upload.
const KNOTS: [(usize, [usize; 2]); 6] = [
    (8 * MIB, [4, 20]),
    (16 * MIB, [4, 16]),
    (26 * MIB, [4, 16]),
    (40 * MIB, [4, 14]),
    (72 * MIB, [4, 8]),
    (112 * MIB, [3, 5]),
];

/// Size of the largest copy, and the most that a pipeline moves.
const LARGEST: usize = 112 * MIB;
const MOST: usize = 576 * MIB;

/// Each round measures everything once, so that a busy moment of the machine spoils one sample of each kind
/// instead of all samples of one.
const ROUNDS: usize = 21;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Option<ExpressCosts>> {
    if bench.device.info().simulated.is_some() {
        return Ok(None);
    }
    let mut lanes = Lanes::new(bench)?;
    let mut times: [[Vec<u64>; KNOTS.len()]; 4] = Default::default();
    for round in 0..=ROUNDS {
        for (index, (bytes, [few, many])) in KNOTS.into_iter().enumerate() {
            let measured = [
                lanes.up_ns(bytes)?,
                lanes.down_ns(bytes)?,
                lanes.pipeline_ns(index, few * bytes)?,
                lanes.pipeline_ns(index, many * bytes)?,
            ];
            // The first round wakes the lanes and touches all memory.
            for (times, ns) in times.iter_mut().zip(measured) {
                if round > 0 {
                    times[index].push(ns);
                }
            }
        }
    }
    let [up, down, few, many] = times.map(|times| times.map(undisturbed));
    // Time of a chunk that is uploaded while another is downloaded: what one more chunk adds.
    let both = std::array::from_fn(|index| {
        let (_, counts) = KNOTS[index];
        many[index].saturating_sub(few[index]) / (counts[1] - counts[0]) as u64
    });
    let mut curves = Vec::with_capacity(3);
    for times in [up, down, both] {
        let points: Vec<_> = KNOTS.iter().map(|(bytes, _)| *bytes).zip(times).collect();
        let curve = curve(&points);
        if curve.bytes_per_s == 0 {
            let says = "a larger copy by the express lane took no longer than a smaller one";
            return Err(Error::Calibration(says.to_owned()));
        }
        curves.push(curve);
    }
    let [up, down, both] = curves.try_into().expect("as many as there are kinds");
    Ok(Some(ExpressCosts {
        lanes: bench.device.express_config().lanes as u32,
        up,
        down,
        both,
    }))
}

/// Time without disturbance. All CPUs work on one copy, so anything else on the machine makes it slower,
/// never faster, and may do so for most of the calibration.
fn undisturbed(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 3]
}

/// Memory, and a pipeline for each size.
struct Lanes<'b, 'd> {
    bench: &'b Bench<'d>,
    source: Vec<u8>,
    target: Vec<u8>,
    there: DeviceBuf<u8>,
    pipelines: Vec<Pipeline>,
    /// End of the memory used last.
    used: usize,
}

impl<'b, 'd> Lanes<'b, 'd> {
    fn new(bench: &'b Bench<'d>) -> Result<Self> {
        let pipelines = KNOTS.into_iter().map(|(chunk_bytes, _)| {
            let config = PipelineConfig::default().chunk_bytes(chunk_bytes);
            Pipeline::new(bench.device, config)
        });
        Ok(Self {
            bench,
            source: vec![1; MOST],
            target: vec![1; MOST],
            there: bench.device.alloc(LARGEST)?,
            pipelines: pipelines.collect::<Result<_>>()?,
            used: 0,
        })
    }

    /// Memory that was not used recently, so it is in no CPU cache, as in a real program.
    fn next(&mut self, bytes: usize) -> Range<usize> {
        if self.used + bytes > self.source.len() {
            self.used = 0;
        }
        let start = self.used;
        self.used += bytes;
        start..self.used
    }

    fn up_ns(&mut self, bytes: usize) -> Result<u64> {
        let range = self.next(bytes);
        let stream = &self.bench.stream;
        let (copied, ns) = self.bench.timed(|| {
            stream.copy_to_device(&self.source[range], self.there.range_mut(..bytes))?;
            stream.synchronize()
        });
        copied.map(|()| ns)
    }

    fn down_ns(&mut self, bytes: usize) -> Result<u64> {
        let (range, stream) = (self.next(bytes), &self.bench.stream);
        let place = self.there.range(..bytes);
        let copy = || stream.copy_to_host(place, &mut self.target[range]);
        let (copied, ns) = self.bench.timed(copy);
        copied.map(|()| ns)
    }

    /// Runs a pipeline with chunks of the knot's size.
    fn pipeline_ns(&mut self, index: usize, bytes: usize) -> Result<u64> {
        let range = self.next(bytes);
        let (source, target) = (&self.source[range.clone()], &mut self.target[range]);
        let kernels = &self.bench.kernels;
        let (ran, ns) = self.bench.timed(|| {
            self.pipelines[index]
                .run_in_place(source, target, |stage, _| kernels.spin(stage.stream(), 0))
        });
        ran.map_err(|error| Error::Calibration(error.to_string()))?;
        Ok(ns)
    }
}
