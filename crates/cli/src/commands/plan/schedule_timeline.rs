//! Schedules of the model as timelines.

use anyhow::Context;
use pinlane_model::engine_rules::Engine;
use pinlane_model::pipeline::{Job, Memory, Shape};
use pinlane_model::schedule::{HostSpan, HostState, Schedule, Work, schedule};
use pinlane_model::{Direction, Profile};
use pinlane_report::timeline::{Span, SpanKind, Timeline, Track};

/// Longer runs are cut to their first chunks.
const WHOLE_CHUNKS_MAX: u64 = 1024;
const FIRST_CHUNKS: u64 = 512;

/// The run of a job in a shape, and whether it is whole: of a long run, only the first chunks.
pub(super) fn pipelined(
    name: &str,
    title: &str,
    job: &Job,
    profile: &Profile,
    shape: &Shape,
) -> anyhow::Result<(Timeline, bool)> {
    let chunks = job.bytes_in.div_ceil(shape.chunk_bytes.max(1));
    let is_whole = chunks <= WHOLE_CHUNKS_MAX;
    let (job, name) = if is_whole {
        (*job, format!("{name}: {title}"))
    } else {
        let name = format!("{name}, the first {FIRST_CHUNKS} of {chunks} chunks");
        (first_chunks(job, shape), name)
    };
    let schedule = schedule(profile, &shape.program(&job, profile)?)?;
    Ok((timeline(&name, &job, &schedule)?, is_whole))
}

/// The run of a job without overlap.
pub(super) fn serial(job: &Job, profile: &Profile) -> anyhow::Result<Timeline> {
    let schedule = schedule(profile, &job.serial(profile)?)?;
    timeline("Serial", job, &schedule)
}

fn first_chunks(job: &Job, shape: &Shape) -> Job {
    let bytes_in = job.bytes_in.min(FIRST_CHUNKS * shape.chunk_bytes);
    let out = u128::from(job.bytes_out) * u128::from(bytes_in) / u128::from(job.bytes_in);
    Job {
        bytes_in,
        // A part of a u64.
        bytes_out: u64::try_from(out).unwrap_or(u64::MAX),
        ..*job
    }
}

fn timeline(name: &str, job: &Job, schedule: &Schedule) -> anyhow::Result<Timeline> {
    let mut spans: Vec<Span> = schedule.spans.iter().map(device_span).collect();
    host_spans(job, schedule, &mut spans);
    Timeline::new(name, schedule.end_ns, spans).context("invalid schedule")
}

fn device_span(span: &pinlane_model::schedule::Span) -> Span {
    let track = match span.engine {
        Engine::HostToDevice(number) => Track::HostToDevice(number),
        Engine::DeviceToHost(number) => Track::DeviceToHost(number),
        Engine::Compute => Track::Compute(0),
    };
    let (kind, label, bytes) = match span.work {
        Work::Copy {
            direction, bytes, ..
        } => match direction {
            Direction::HostToDevice => (SpanKind::HostToDevice, "copy in", bytes),
            Direction::DeviceToHost => (SpanKind::DeviceToHost, "copy out", bytes),
        },
        Work::Kernel { .. } => (SpanKind::Kernel, "kernel", 0),
        Work::Fill { bytes } => (SpanKind::Memset, "fill", bytes),
    };
    Span::new(track, kind, span.start_ns, span.end_ns)
        .label(label)
        .stream(span.stream)
        .chunk(span.tag.into())
        .bytes(bytes)
}

/// The spans of the host's threads. Adjacent calls for one chunk are merged.
fn host_spans(job: &Job, schedule: &Schedule, spans: &mut Vec<Span>) {
    let before = spans.len();
    for host in &schedule.host_spans {
        if host.start_ns == host.end_ns {
            continue;
        }
        let span = host_span(job, host);
        match spans[before..].last_mut() {
            Some(last)
                if (last.track, last.kind, last.chunk) == (span.track, span.kind, span.chunk)
                    && last.label == span.label
                    && last.end_ns == span.start_ns =>
            {
                last.end_ns = span.end_ns;
            }
            _ => spans.push(span),
        }
    }
}

fn host_span(job: &Job, host: &HostSpan) -> Span {
    let fills = job.input == Memory::Express;
    let (track, work) = match host.thread {
        0 => (Track::Host, (SpanKind::HostWork, "host work")),
        1 if fills => (Track::Staging(0), (SpanKind::Staging, "fill the ring")),
        _ if fills => (Track::Staging(1), (SpanKind::Staging, "empty the ring")),
        _ => (Track::Staging(0), (SpanKind::Staging, "empty the ring")),
    };
    let (kind, label) = match host.state {
        HostState::Call => (SpanKind::HostWork, "driver calls"),
        HostState::Staging => (SpanKind::Staging, "driver's own staging"),
        HostState::Waiting => (SpanKind::Wait, "wait"),
        HostState::Working => work,
    };
    Span::new(track, kind, host.start_ns, host.end_ns)
        .label(label)
        .chunk(host.tag.into())
}
