//! No simple way to do a job beats its plan, on any built-in profile.

use pinlane::model::pipeline::{Job, Memory, PipelineOrder, Shape};
use pinlane::model::planner::{Limits, best};
use pinlane::model::{Profile, SplitMix64};
use pinlane::pipeline::{Pipeline, PipelineConfig, measure_kernel};
use pinlane::{Builtin, DeviceBuf, DeviceSliceMut, PinnedBuf, Result, Stream};
use pinlane_sim::Sim;

use super::rig::Rig;
use pinlane_testing::full_or;

/// A job on a simulated device.
struct Bench {
    rig: Rig,
    kind: Kind,
    rounds: u32,
    input: PinnedBuf<u32>,
    output: PinnedBuf<u32>,
    on_device: DeviceBuf<u32>,
    stream: Stream,
}

/// What limits the kernel.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Compute,
    Memory,
    Latency,
}

impl Kind {
    fn launch(
        self,
        kernels: &Builtin,
        stream: &Stream,
        rounds: u32,
        data: DeviceSliceMut<'_, u32>,
    ) -> Result<()> {
        match self {
            Self::Compute => kernels.churn(stream, rounds, data),
            Self::Memory => kernels.sweep(stream, rounds, data),
            Self::Latency => kernels.round_trips(stream, rounds, data),
        }
    }
}

impl Bench {
    fn new(profile: &Profile, kind: Kind, len: usize, rounds: u32) -> Self {
        let builder = Sim::builder().profile(profile.clone()).checks(false);
        let rig = Rig::on(builder.kernel(super::mixing_kernel::kernel()));
        let device = rig.device.clone();
        Self {
            input: device.pinned(len).unwrap(),
            output: device.pinned(len).unwrap(),
            on_device: device.alloc(len).unwrap(),
            stream: device.stream().unwrap(),
            rig,
            kind,
            rounds,
        }
    }

    fn job(&mut self, profile: &Profile) -> Job {
        let len = self.input.len();
        let (kind, rounds, kernels) = (self.kind, self.rounds, &self.rig.kernels);
        let on_device = &mut self.on_device;
        let kernel = measure_kernel(&self.rig.device, profile, len, 4, |stream, items| {
            kind.launch(kernels, stream, rounds, on_device.range_mut(items))
        });
        Job {
            bytes_in: len as u64 * 4,
            bytes_out: len as u64 * 4,
            kernel: kernel.unwrap(),
            input: Memory::Pinned,
            output: Memory::Pinned,
            host_ns_per_chunk: 0,
        }
    }

    /// Simulated time of a pipeline whose streams and buffers exist.
    fn piped_ns(&mut self, shape: &Shape) -> u64 {
        let config = PipelineConfig::planned(shape, 4).unwrap();
        let pipeline = Pipeline::new(&self.rig.device, config).unwrap();
        self.run_ns(&pipeline);
        self.run_ns(&pipeline)
    }

    fn run_ns(&mut self, pipeline: &Pipeline) -> u64 {
        let began_ns = self.rig.sim.now_ns();
        let (kind, rounds, kernels) = (self.kind, self.rounds, &self.rig.kernels);
        let ran = pipeline.run_in_place(&self.input, &mut self.output, |stage, data| {
            kind.launch(kernels, stage.stream(), rounds, data)
        });
        ran.unwrap();
        self.rig.sim.now_ns() - began_ns
    }

    fn synchronous_ns(&mut self) -> u64 {
        let began_ns = self.rig.sim.now_ns();
        let stream = &self.stream;
        let done = self.rig.device.scope(|scope| {
            scope
                .upload(stream, &self.input, &mut self.on_device)?
                .wait()?;
            let data = self.on_device.range_mut(..);
            self.kind
                .launch(&self.rig.kernels, stream, self.rounds, data)?;
            stream.synchronize()?;
            scope
                .download(stream, &self.on_device, &mut self.output)?
                .wait()?;
            Ok(())
        });
        done.unwrap();
        self.rig.sim.now_ns() - began_ns
    }
}

fn log_uniform(random: &mut SplitMix64, least: f64, most: f64) -> f64 {
    let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    least * (most / least).powf(share)
}

/// Several streams, with several numbers of chunks each.
fn simple_shapes(bytes: u64) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for order in [PipelineOrder::DepthFirst, PipelineOrder::BreadthFirst] {
        for streams in [2, 4, 8] {
            for per_stream in [1, 2, 4] {
                let chunks = u64::from(streams) * per_stream;
                shapes.push(Shape {
                    chunk_bytes: bytes.div_ceil(chunks).next_multiple_of(4),
                    streams,
                    order,
                    ring_slots: streams * 2,
                });
            }
        }
    }
    shapes
}

/// Reduced unless `PINLANE_TEST=full`.
#[test]
fn no_simple_way_beats_the_plan_by_more_than_two_percent() {
    let (jobs, most_bytes) = (full_or(40, 4), full_or(64, 16) << 20);
    for name in Profile::builtin_names().filter(|name| *name != "null") {
        let profile = Profile::builtin(name).unwrap();
        for seed in 0..jobs {
            let mut random = SplitMix64::new(seed);
            let kind = *random.pick(&[Kind::Compute, Kind::Memory, Kind::Latency]);
            let bytes = log_uniform(&mut random, (1 << 20) as f64, most_bytes as f64);
            let len = bytes as usize / 4;
            let kernel_ns = log_uniform(&mut random, 5e4, 3e7);
            // As the kernels cost on the simulator.
            let per_round_ns = match kind {
                Kind::Compute => len as f64 / 16_000.0,
                Kind::Memory => len as f64 * 8e9 / profile.kernel.bytes_per_s as f64,
                Kind::Latency => (len as f64 * 600.0 / 270_336.0).max(9_600.0),
            };
            let rounds = (kernel_ns / per_round_ns).ceil() as u32;
            let mut bench = Bench::new(&profile, kind, len, rounds);
            let job = bench.job(&profile);
            let plan = best(&job, &profile, &Limits::default()).unwrap();
            let planned_ns = bench.piped_ns(&plan.shape);
            let mut others = vec![(bench.synchronous_ns(), None)];
            for shape in simple_shapes(job.bytes_in) {
                others.push((bench.piped_ns(&shape), Some(shape)));
            }
            let (best_ns, best_shape) = *others.iter().min_by_key(|other| other.0).unwrap();
            let place = format!(
                "{name}, seed {seed}: {kind:?}, {len} elements, {rounds} rounds, {:?}; {:?} takes {planned_ns}, \
                 predicted {}; {best_shape:?} takes {best_ns}",
                job.kernel, plan.shape, plan.predicted_ns
            );
            assert!(planned_ns * 50 <= best_ns * 51, "behind: {place}");
            let off_ns = plan.predicted_ns.abs_diff(planned_ns);
            assert!(off_ns * 100 <= planned_ns * 3, "prediction: {place}");
        }
    }
}
