//! The five variants, and recording what ran when.

use anyhow::ensure;
use pinlane::pipeline::{Pipeline, PipelineConfig, PipelineOrder, RunSummary, StageKind};
use pinlane::{Device, Event, Result, Stream};
use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, Memory};
use pinlane_model::planner::{Limits, best};
use pinlane_report::Overlap;
use pinlane_report::timeline::{Span, SpanKind, Timeline, Track};

use super::job::OverlapJob;

/// Chunks per stream of the breadth-first and depth-first variants.
const CHUNKS_PER_STREAM: usize = 2;

/// The variants, and what was predicted for the planned one.
pub(super) struct MeasuredVariants {
    pub(super) timelines: Vec<Timeline>,
    pub(super) predicted_ns: u64,
}

/// Runs each variant `repeat` times, and once more to record what ran when. Recording adds calls, so times
/// are of the other runs: the median time from the call to its return, with streams and buffers that exist. That
/// is what the planner predicts.
pub(super) fn run_all(
    job: &mut OverlapJob<'_>,
    streams: u32,
    profile: &Profile,
    repeat: u32,
) -> anyhow::Result<MeasuredVariants> {
    let breadth_first = config(job, streams as usize, PipelineOrder::BreadthFirst);
    let depth_first = config(job, streams as usize, PipelineOrder::DepthFirst);
    let (planned, predicted_ns) = planned(job, profile)?;
    let planned_streams = match planned.order {
        PipelineOrder::StageStreams => None,
        _ => Some(planned.streams as u32),
    };
    let planned_name = Overlap::planned_name(planned.chunk_bytes as u64, planned_streams);
    let mut timelines = Vec::new();
    for (name, synchronous) in [("Synchronous", true), ("CPU work beside one stream", false)] {
        let took_ns = median_ns(repeat, || one_stream_ns(job, synchronous))?;
        timelines.push(one_stream(job, synchronous)?.timeline(name, took_ns)?);
    }
    let expected = job.output.to_vec();
    for (name, config) in [
        (format!("{streams} streams, breadth-first"), breadth_first),
        (format!("{streams} streams, depth-first"), depth_first),
        (planned_name, planned),
    ] {
        let recorded = Pipeline::new(job.device, config.clone().record(true))?;
        let pipeline = Pipeline::new(job.device, config)?;
        job.output.fill(0);
        pipelined_ns(job, &pipeline)?; // the first run allocates
        let took_ns = median_ns(repeat, || pipelined_ns(job, &pipeline))?;
        pipelined(job, &recorded)?;
        timelines.push(pipelined(job, &recorded)?.timeline(&name, took_ns)?);
        let same = expected == job.output[..];
        ensure!(same, "{name}: the result differs from that of one stream");
    }
    Ok(MeasuredVariants {
        timelines,
        predicted_ns,
    })
}

fn median_ns(repeat: u32, mut run: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<u64> {
    let runs = (0..repeat).map(|_| run());
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(pinlane_model::median(runs))
}

/// Time of [`one_stream`], not recorded.
fn one_stream_ns(job: &mut OverlapJob<'_>, synchronous: bool) -> anyhow::Result<u64> {
    let began_ns = job.clock.now_ns();
    let OverlapJob { device, stream, .. } = job;
    device.scope(|scope| {
        let up = scope.upload(stream, &job.input, &mut job.on_device)?;
        if synchronous {
            up.wait()?;
        }
        job.kernels.churn(stream, job.rounds, &mut job.on_device)?;
        if synchronous {
            stream.synchronize()?;
        }
        let down = scope.download(stream, &job.on_device, &mut job.output)?;
        if synchronous {
            down.wait()?;
        }
        job.clock.spin(job.host_ns);
        Ok(())
    })?;
    stream.synchronize()?;
    Ok(job.clock.now_ns() - began_ns)
}

/// Time of [`pipelined`], not recorded.
fn pipelined_ns(job: &mut OverlapJob<'_>, pipeline: &Pipeline) -> anyhow::Result<u64> {
    let began_ns = job.clock.now_ns();
    let (kernels, rounds) = (&job.kernels, job.rounds);
    let (clock, host_ns) = (&job.clock, job.host_ns);
    pipeline.run_in_place_meanwhile(
        &job.input,
        &mut job.output,
        |stage, data| kernels.churn(stage.stream(), rounds, data),
        || clock.spin(host_ns),
    )?;
    Ok(job.clock.now_ns() - began_ns)
}

/// Copy, kernel and copy on one stream. Synchronous: waits for each step, then does the CPU's work. Otherwise
/// submits all steps at once and does the CPU's work meanwhile.
fn one_stream(job: &mut OverlapJob<'_>, synchronous: bool) -> anyhow::Result<RecordedRun> {
    let bytes = job.bytes() as u64;
    let OverlapJob { device, stream, .. } = job;
    let mut recorder = SpanRecorder::start(device, &job.idle)?;
    device.scope(|scope| {
        let up = recorder.record(SpanKind::HostToDevice, stream, || {
            scope.upload(stream, &job.input, &mut job.on_device)
        })?;
        if synchronous {
            up.wait()?;
        }
        recorder.record(SpanKind::Kernel, stream, || {
            job.kernels.churn(stream, job.rounds, &mut job.on_device)
        })?;
        if synchronous {
            stream.synchronize()?;
        }
        let down = recorder.record(SpanKind::DeviceToHost, stream, || {
            scope.download(stream, &job.on_device, &mut job.output)
        })?;
        if synchronous {
            down.wait()?;
        }
        recorder.record_host(|| job.clock.spin(job.host_ns))
    })?;
    stream.synchronize()?;
    recorder.finish(bytes, Vec::new())
}

/// Chunk by chunk through a pipeline, with the CPU's work meanwhile.
fn pipelined(job: &mut OverlapJob<'_>, pipeline: &Pipeline) -> anyhow::Result<RecordedRun> {
    let mut recorder = SpanRecorder::start(job.device, &job.idle)?;
    let (kernels, rounds) = (&job.kernels, job.rounds);
    let (clock, host_ns) = (&job.clock, job.host_ns);
    let (flow, worked) = pipeline.run_in_place_meanwhile(
        &job.input,
        &mut job.output,
        |stage, data| kernels.churn(stage.stream(), rounds, data),
        || recorder.record_host(|| clock.spin(host_ns)),
    )?;
    worked?;
    let spans = spans(&flow, pipeline, job.bytes());
    recorder.finish(job.bytes() as u64, spans)
}

/// What ran when in a recorded run.
struct RecordedRun(Vec<Span>);

impl RecordedRun {
    /// The timeline of a run that took so long. If recording made it longer, the spans are drawn to scale.
    fn timeline(mut self, name: &str, took_ns: u64) -> anyhow::Result<Timeline> {
        let end_ns = self.0.iter().map(|span| span.end_ns).max().unwrap_or(0);
        if end_ns > took_ns {
            let scaled = |ns: u64| {
                let ns = u128::from(ns) * u128::from(took_ns) / u128::from(end_ns);
                u64::try_from(ns).expect("no more than before")
            };
            for span in &mut self.0 {
                (span.start_ns, span.end_ns) = (scaled(span.start_ns), scaled(span.end_ns));
            }
        }
        Ok(Timeline::new(name, took_ns, self.0)?)
    }
}

fn spans(flow: &RunSummary, pipeline: &Pipeline, bytes: usize) -> Vec<Span> {
    let chunk_bytes = pipeline.config().chunk_bytes / 4 * 4;
    let spans = flow.spans.iter().map(|span| {
        let kind = match span.stage {
            StageKind::Upload => SpanKind::HostToDevice,
            StageKind::Download => SpanKind::DeviceToHost,
            _ => SpanKind::Kernel,
        };
        let before = span.chunk as usize * chunk_bytes;
        Span::new(track(kind), kind, span.start_ns, span.end_ns)
            .chunk(span.chunk)
            .stream(span.stream as u32)
            .bytes(chunk_bytes.min(bytes - before) as u64)
    });
    spans.collect()
}

fn config(job: &OverlapJob<'_>, streams: usize, order: PipelineOrder) -> PipelineConfig {
    let mut config = PipelineConfig::default();
    let chunks = streams * CHUNKS_PER_STREAM;
    config.chunk_bytes = job.bytes().div_ceil(chunks).next_multiple_of(4);
    (config.streams, config.order) = (streams, order);
    config.slots = chunks;
    config
}

/// The planned configuration, and its predicted time.
fn planned(job: &mut OverlapJob<'_>, profile: &Profile) -> anyhow::Result<(PipelineConfig, u64)> {
    let bytes = job.bytes() as u64;
    let kernel = job.measure_kernel(profile)?;
    let job = Job {
        bytes_in: bytes,
        bytes_out: bytes,
        kernel,
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    };
    let plan = best(&job, profile, &Limits::default())?;
    let config = PipelineConfig::planned(&plan.shape, size_of::<u32>())?;
    Ok((config, plan.predicted_ns))
}

struct SpanRecorder<'a> {
    device: &'a Device,
    idle: &'a Stream,
    start: Event,
    steps: Vec<(SpanKind, Event, Event)>,
}

impl<'a> SpanRecorder<'a> {
    /// Starts a run. `idle` is an otherwise unused stream.
    fn start(device: &'a Device, idle: &'a Stream) -> Result<Self> {
        let start = device.event_with_timing()?;
        idle.record(&start)?;
        Ok(Self {
            device,
            idle,
            start,
            steps: Vec::new(),
        })
    }

    /// Submits a step between two events on its stream.
    fn record<R>(
        &mut self,
        kind: SpanKind,
        stream: &Stream,
        step: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let before = self.device.event_with_timing()?;
        let after = self.device.event_with_timing()?;
        stream.record(&before)?;
        let done = step()?;
        stream.record(&after)?;
        self.steps.push((kind, before, after));
        Ok(done)
    }

    /// Records work of the CPU, timed by events on the idle stream.
    fn record_host(&mut self, work: impl FnOnce()) -> Result<()> {
        self.record(SpanKind::HostWork, self.idle, || {
            work();
            Ok(())
        })
    }

    /// The spans of the run, which must be finished, and `spans` recorded elsewhere.
    fn finish(self, bytes: u64, mut spans: Vec<Span>) -> anyhow::Result<RecordedRun> {
        self.idle.synchronize()?;
        let at = |event: &Event| -> Result<u64> {
            Ok(u64::try_from(self.start.elapsed_ns(event)?).unwrap_or(0))
        };
        for (kind, before, after) in &self.steps {
            let (start_ns, end_ns) = (at(before)?, at(after)?);
            let span = Span::new(track(*kind), *kind, start_ns, end_ns.max(start_ns));
            spans.push(match kind {
                SpanKind::HostWork => span.label("CPU work"),
                _ => span.bytes(bytes),
            });
        }
        Ok(RecordedRun(spans))
    }
}

fn track(kind: SpanKind) -> Track {
    match kind {
        SpanKind::HostToDevice => Track::HostToDevice(0),
        SpanKind::DeviceToHost => Track::DeviceToHost(0),
        SpanKind::Kernel => Track::Compute(0),
        _ => Track::Host,
    }
}
