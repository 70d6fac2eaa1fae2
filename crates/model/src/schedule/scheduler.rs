//! The event loop over device, express lane and host.

use super::device::Device;
use super::host::{Host, Run};
use super::{Action, HostSpan, Program, Schedule, ScheduleError, Span};
use crate::Profile;

/// Computes the timeline of a program on a profile.
///
/// # Errors
/// [`ScheduleError`] for a program that cannot run: unknown numbers, or a wait that never ends.
pub fn schedule(profile: &Profile, program: &Program) -> Result<Schedule, ScheduleError> {
    let mut scheduler = Scheduler::new(profile);
    let steps = program.threads.iter().flatten();
    let submits = steps.filter(|step| matches!(step.action, Action::Submit { .. }));
    let mut schedule = Schedule {
        spans: Vec::with_capacity(submits.count()),
        host_spans: Vec::with_capacity(program.threads.iter().map(Vec::len).sum()),
        ..Schedule::default()
    };
    schedule.end_ns = scheduler.run(program, &mut schedule)?;
    schedule.host_spans.sort_by_key(|span| span.thread);
    schedule.thread_ends_ns = scheduler.host.ends_ns()?.collect();
    Ok(schedule)
}

/// Receives spans as they end.
pub(crate) trait SpanSink {
    fn span(&mut self, span: Span);
    fn host(&mut self, span: HostSpan);
}

impl SpanSink for Schedule {
    fn span(&mut self, span: Span) {
        self.spans.push(span);
    }

    fn host(&mut self, span: HostSpan) {
        self.host_spans.push(span);
    }
}

/// Ignores all spans.
pub(crate) struct NoSpans;

impl SpanSink for NoSpans {
    fn span(&mut self, _: Span) {}

    fn host(&mut self, _: HostSpan) {}
}

/// Schedules programs one after the other, reusing its memory.
pub(crate) struct Scheduler<'a> {
    profile: &'a Profile,
    device: Device,
    express: Device,
    host: Host,
}

/// The express lane has one stream per direction.
const EXPRESS_STREAMS: u32 = 2;

impl<'a> Scheduler<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            device: Device::new(profile),
            express: Device::express(),
            host: Host::default(),
        }
    }

    /// Runs a program; returns its end.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        sink: &mut impl SpanSink,
    ) -> Result<u64, ScheduleError> {
        let steps: usize = program.threads.iter().map(Vec::len).sum();
        if u32::try_from(steps).is_err() {
            return Err(ScheduleError::TooLong);
        }
        let mut run = Run {
            profile: self.profile,
            program,
            device: &mut self.device,
            express: &mut self.express,
            host: &mut self.host,
            sink,
        };
        run.device.reset(program.streams, steps);
        run.express.reset(EXPRESS_STREAMS, 0);
        let both_percent = program.express_both_percent;
        run.express.engines.set_both_ways_percent(both_percent);
        run.host.reset(self.profile, program);
        while let Some(at_ns) = run.step()? {
            if at_ns == u64::MAX {
                return Err(ScheduleError::TooLong);
            }
        }
        let host_end_ns = run.host.ends_ns()?.max().unwrap_or(0);
        let end_ns = host_end_ns.max(run.device.end_ns);
        match end_ns {
            u64::MAX => Err(ScheduleError::TooLong),
            _ => Ok(end_ns),
        }
    }
}

impl<S: SpanSink> Run<'_, S> {
    /// Carries out what happens next, and returns its time; `None` if nothing is left. At the same
    /// time the device precedes the express lane, and both precede the host: a call sees everything
    /// that ends at its own time as done.
    fn step(&mut self) -> Result<Option<u64>, ScheduleError> {
        let host_next = self.host.next();
        let host_ns = host_next.map_or(u64::MAX, |(at_ns, _)| at_ns);
        let express_next = self.express.next.filter(|&(at_ns, _)| at_ns <= host_ns);
        let others_ns = express_next.map_or(host_ns, |(at_ns, _)| at_ns);
        let device_next = self.device.next.filter(|&(at_ns, _)| at_ns <= others_ns);
        Ok(if let Some((at_ns, event)) = device_next {
            self.device.handle(at_ns, event, self.sink);
            self.wake(at_ns);
            Some(at_ns)
        } else if let Some((at_ns, event)) = express_next {
            self.express.handle(at_ns, event, &mut NoSpans);
            self.wake_express(at_ns);
            Some(at_ns)
        } else if let Some((at_ns, thread)) = host_next {
            self.act(thread, at_ns)?;
            Some(at_ns)
        } else {
            None
        })
    }
}
