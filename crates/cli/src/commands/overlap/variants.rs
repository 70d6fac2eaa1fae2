//! The five ways.

use anyhow::ensure;
use pinlane::pipeline::{Flow, Order, Pipeline, PipelineConfig, StageKind};
use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, KernelTime, Memory};
use pinlane_model::search::{Limits, best};
use pinlane_report::Overlap;
use pinlane_report::timeline::{Span, SpanKind, Timeline};

use super::lesson::Lesson;
use super::marks::{Marks, track};

/// Chunks that each stream gets in the third and fourth way.
const CHUNKS_OF_A_STREAM: usize = 2;

/// Each way, `repeat` times; the median run of each.
pub(super) fn all(
    lesson: &mut Lesson<'_>,
    streams: u32,
    profile: &Profile,
    repeat: u32,
) -> anyhow::Result<Vec<Timeline>> {
    let breadth_first = config(lesson, streams as usize, Order::BreadthFirst);
    let depth_first = config(lesson, streams as usize, Order::DepthFirst);
    let planned = planned(lesson, profile)?;
    let name = |streams| format!("{streams} streams");
    let planned_streams = match planned.order {
        Order::StageStreams => None,
        _ => Some(planned.streams as u32),
    };
    let planned_name = Overlap::planned_name(planned.chunk_bytes as u64, planned_streams);
    let mut timelines = vec![
        middle(repeat, || serial(lesson))?,
        middle(repeat, || one_stream(lesson))?,
    ];
    let must = lesson.output.to_vec();
    for (name, config) in [
        (format!("{}, breadth-first", name(streams)), breadth_first),
        (format!("{}, depth-first", name(streams)), depth_first),
        (planned_name, planned),
    ] {
        let pipeline = Pipeline::new(lesson.device, config)?;
        lesson.output.fill(0);
        piped(lesson, &pipeline, &name)?; // the first allocates
        timelines.push(middle(repeat, || piped(lesson, &pipeline, &name))?);
        ensure!(
            must == lesson.output[..],
            "{name} gave other bytes than one stream"
        );
    }
    Ok(timelines)
}

/// The median of some runs.
fn middle(
    repeat: u32,
    mut run: impl FnMut() -> anyhow::Result<Timeline>,
) -> anyhow::Result<Timeline> {
    let runs = (0..repeat).map(|_| run());
    let mut runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    runs.sort_by_key(Timeline::total_ns);
    Ok(runs.swap_remove(runs.len() / 2))
}

/// Copy, kernel, copy, each waited for; then the CPU's work.
fn serial(lesson: &mut Lesson<'_>) -> anyhow::Result<Timeline> {
    let bytes = lesson.bytes() as u64;
    let Lesson { device, stream, .. } = lesson;
    let mut marks = Marks::begin(device, &lesson.idle)?;
    device.scope(|scope| {
        let up = marks.around(SpanKind::HostToDevice, stream, || {
            scope.upload(stream, &lesson.input, &mut lesson.on_device)
        })?;
        up.wait()?;
        marks.around(SpanKind::Kernel, stream, || {
            lesson
                .kernels
                .churn(stream, lesson.rounds, &mut lesson.on_device)
        })?;
        stream.synchronize()?;
        let down = marks.around(SpanKind::DeviceToHost, stream, || {
            scope.download(stream, &lesson.on_device, &mut lesson.output)
        })?;
        down.wait()?;
        marks.host(|| lesson.clock.work(lesson.host_ns))
    })?;
    marks.end("Synchronous", bytes, Vec::new())
}

/// The same submitted at once to one stream, with the CPU's work beside it.
fn one_stream(lesson: &mut Lesson<'_>) -> anyhow::Result<Timeline> {
    let bytes = lesson.bytes() as u64;
    let Lesson { device, stream, .. } = lesson;
    let mut marks = Marks::begin(device, &lesson.idle)?;
    device.scope(|scope| {
        marks.around(SpanKind::HostToDevice, stream, || {
            scope.upload(stream, &lesson.input, &mut lesson.on_device)
        })?;
        marks.around(SpanKind::Kernel, stream, || {
            lesson
                .kernels
                .churn(stream, lesson.rounds, &mut lesson.on_device)
        })?;
        marks.around(SpanKind::DeviceToHost, stream, || {
            scope.download(stream, &lesson.on_device, &mut lesson.output)
        })?;
        marks.host(|| lesson.clock.work(lesson.host_ns))
    })?;
    stream.synchronize()?;
    marks.end("CPU work beside one stream", bytes, Vec::new())
}

/// Chunk by chunk, with the CPU's work beside it.
fn piped(lesson: &mut Lesson<'_>, pipeline: &Pipeline, name: &str) -> anyhow::Result<Timeline> {
    let mut marks = Marks::begin(lesson.device, &lesson.idle)?;
    let (kernels, rounds) = (&lesson.kernels, lesson.rounds);
    let (clock, host_ns) = (&lesson.clock, lesson.host_ns);
    let (flow, worked) = pipeline.run_in_place_meanwhile(
        &lesson.input,
        &mut lesson.output,
        |stage, data| kernels.churn(stage.stream(), rounds, data),
        || marks.host(|| clock.work(host_ns)),
    )?;
    worked?;
    let (bytes, spans) = (
        lesson.bytes() as u64,
        spans(&flow, pipeline, lesson.bytes()),
    );
    marks.end(name, bytes, spans)
}

fn spans(flow: &Flow, pipeline: &Pipeline, bytes: usize) -> Vec<Span> {
    let chunk_bytes = pipeline.config().chunk_bytes / 4 * 4;
    let each = flow.spans.iter().map(|span| {
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
    each.collect()
}

fn config(lesson: &Lesson<'_>, streams: usize, order: Order) -> PipelineConfig {
    let mut config = PipelineConfig::default();
    let chunks = streams * CHUNKS_OF_A_STREAM;
    config.chunk_bytes = lesson.bytes().div_ceil(chunks).next_multiple_of(4);
    (config.streams, config.order) = (streams, order);
    (config.slots, config.record) = (chunks, true);
    config
}

/// What the model thinks best.
fn planned(lesson: &Lesson<'_>, profile: &Profile) -> anyhow::Result<PipelineConfig> {
    let bytes = lesson.bytes() as u64;
    let kernel_ns = lesson.kernel_ns.saturating_sub(profile.kernel.launch_ns);
    let ns_per_gib = (u128::from(kernel_ns) << 30) / u128::from(bytes);
    let job = Job {
        bytes_in: bytes,
        bytes_out: bytes,
        kernel: KernelTime {
            fixed_ns: 0,
            ns_per_gib: u64::try_from(ns_per_gib)?,
        },
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    };
    let shape = best(&job, profile, &Limits::default())?.shape;
    let mut config = PipelineConfig::planned(&shape, size_of::<u32>())?;
    config.record = true;
    Ok(config)
}
