//! Records with events what ran when.

use pinlane::{Device, Event, Result, Stream};
use pinlane_report::timeline::{Span, SpanKind, Timeline, Track};

/// Events around the steps of one run.
pub(super) struct SpanRecorder<'a> {
    device: &'a Device,
    idle: &'a Stream,
    start: Event,
    steps: Vec<(SpanKind, Event, Event)>,
}

impl<'a> SpanRecorder<'a> {
    /// Starts a run. `idle` is an otherwise unused stream.
    pub(super) fn start(device: &'a Device, idle: &'a Stream) -> Result<Self> {
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
    pub(super) fn record<R>(
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
    pub(super) fn record_host(&mut self, work: impl FnOnce()) -> Result<()> {
        let idle = self.idle;
        self.record(SpanKind::HostWork, idle, || {
            work();
            Ok(())
        })
    }

    /// The timeline of the run, which must be finished. `spans` adds spans recorded elsewhere.
    pub(super) fn finish(
        self,
        name: &str,
        bytes: u64,
        mut spans: Vec<Span>,
    ) -> anyhow::Result<Timeline> {
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
        let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        Ok(Timeline::new(name, end_ns, spans)?)
    }
}

/// The track of a kind of step.
pub(super) fn track(kind: SpanKind) -> Track {
    match kind {
        SpanKind::HostToDevice => Track::HostToDevice(0),
        SpanKind::DeviceToHost => Track::DeviceToHost(0),
        SpanKind::Kernel => Track::Compute(0),
        _ => Track::Host,
    }
}
