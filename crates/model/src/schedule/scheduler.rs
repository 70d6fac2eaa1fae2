//! The event loop over device, express lane and host.

use super::device::Device;
use super::host::{Host, Machine};
use super::{Action, HostSpan, Program, Schedule, ScheduleError, Span};
use crate::Profile;
use crate::engine::EngineKind;

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
    let totals = scheduler.run(program, &mut schedule)?;
    schedule.host_spans.sort_by_key(|span| span.thread);
    schedule.thread_ends_ns = scheduler.host.ends_ns()?.collect();
    schedule.end_ns = totals.end_ns;
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

/// The result of a run, without spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    /// When everything was done.
    pub(crate) end_ns: u64,
    /// Time that engines were busy, by the kind that operations needed.
    pub(crate) busy_ns: [u64; EngineKind::COUNT],
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            device: Device::new(profile),
            express: Device::express(),
            host: Host::default(),
        }
    }

    /// Runs a program to its end.
    pub(crate) fn run<S: SpanSink>(
        &mut self,
        program: &Program,
        sink: &mut S,
    ) -> Result<Totals, ScheduleError> {
        let steps: usize = program.threads.iter().map(Vec::len).sum();
        if u32::try_from(steps).is_err() {
            return Err(ScheduleError::TooLong);
        }
        let Self {
            profile,
            device,
            express,
            host,
        } = self;
        device.reset(program.streams, steps);
        express.reset(EXPRESS_STREAMS, 0);
        express.set_both_ways_percent(program.express_both_percent);
        host.reset(profile, program);
        let mut machine = Machine {
            profile,
            program,
            device,
            express,
            sink,
        };
        while let Some(at_ns) = step(host, &mut machine)? {
            if at_ns == u64::MAX {
                return Err(ScheduleError::TooLong);
            }
        }
        let host_end_ns = host.ends_ns()?.max().unwrap_or(0);
        let end_ns = host_end_ns.max(machine.device.end_ns);
        if end_ns == u64::MAX {
            return Err(ScheduleError::TooLong);
        }
        Ok(Totals {
            end_ns,
            busy_ns: machine.device.busy_ns,
        })
    }
}

/// Carries out what happens next, and returns its time; `None` if nothing is left. At the same
/// time the device precedes the express lane, and both precede the host: a call sees everything
/// that ends at its own time as done.
fn step<S: SpanSink>(
    host: &mut Host,
    machine: &mut Machine<'_, S>,
) -> Result<Option<u64>, ScheduleError> {
    let host_next = host.next();
    let host_ns = host_next.map_or(u64::MAX, |(at_ns, _)| at_ns);
    let express_next = machine
        .express
        .next()
        .filter(|&(at_ns, _)| at_ns <= host_ns);
    let others_ns = express_next.map_or(host_ns, |(at_ns, _)| at_ns);
    if let Some((at_ns, event)) = machine.device.next()
        && at_ns <= others_ns
    {
        machine.device.handle(at_ns, event, machine.sink);
        host.wake(at_ns, machine);
        return Ok(Some(at_ns));
    }
    if let Some((at_ns, event)) = express_next {
        machine.express.handle(at_ns, event, &mut NoSpans);
        host.wake_express(at_ns, machine);
        return Ok(Some(at_ns));
    }
    if let Some((at_ns, thread)) = host_next {
        host.act(thread, at_ns, machine)?;
        return Ok(Some(at_ns));
    }
    Ok(None)
}
