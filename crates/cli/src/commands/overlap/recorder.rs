//! What ran when, by events of the device.

use pinlane::{Device, Event, Result, Stream};
use pinlane_report::timeline::{Span, SpanKind, Timeline, Track};

/// Events around the steps of one run.
pub(super) struct Marks<'a> {
    device: &'a Device,
    idle: &'a Stream,
    begin: Event,
    marks: Vec<(SpanKind, Event, Event)>,
}

impl<'a> Marks<'a> {
    /// The run begins now.
    pub(super) fn begin(device: &'a Device, idle: &'a Stream) -> Result<Self> {
        let begin = device.event_with_timing()?;
        idle.record(&begin)?;
        Ok(Self {
            device,
            idle,
            begin,
            marks: Vec::new(),
        })
    }

    /// Do a step, between two events of its stream.
    pub(super) fn around<R>(
        &mut self,
        kind: SpanKind,
        stream: &Stream,
        step: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let before = self.device.event_with_timing()?;
        let behind = self.device.event_with_timing()?;
        stream.record(&before)?;
        let done = step()?;
        stream.record(&behind)?;
        self.marks.push((kind, before, behind));
        Ok(done)
    }

    /// A step of the CPU's, which the idle stream tells the time of.
    pub(super) fn host(&mut self, work: impl FnOnce()) -> Result<()> {
        let idle = self.idle;
        self.around(SpanKind::HostWork, idle, || {
            work();
            Ok(())
        })
    }

    /// The run is over, and all of it is done: it took until the last step was.
    pub(super) fn end(self, name: &str, bytes: u64, more: Vec<Span>) -> anyhow::Result<Timeline> {
        self.idle.synchronize()?;
        let at = |event: &Event| -> Result<u64> {
            Ok(u64::try_from(self.begin.elapsed_ns(event)?).unwrap_or(0))
        };
        let mut spans = more;
        for (kind, before, behind) in &self.marks {
            let (start_ns, end_ns) = (at(before)?, at(behind)?);
            let span = Span::new(track(*kind), *kind, start_ns, end_ns.max(start_ns));
            spans.push(match kind {
                SpanKind::HostWork => span.label("CPU work"),
                _ => span.bytes(bytes),
            });
        }
        let last_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        Ok(Timeline::new(name, last_ns, spans)?)
    }
}

/// Where a kind of step is drawn.
pub(super) fn track(kind: SpanKind) -> Track {
    match kind {
        SpanKind::HostToDevice => Track::HostToDevice(0),
        SpanKind::DeviceToHost => Track::DeviceToHost(0),
        SpanKind::Kernel => Track::Compute(0),
        _ => Track::Host,
    }
}
