//! Discrete events: what happens next, on the device or on the host.

use super::device::Device;
use super::host::{Host, Surroundings};
use super::span::{HostSpan, Schedule, Span};
use super::{Action, Program, ScheduleError};
use crate::Profile;
use crate::engine::Need;

/// What a program takes on a profile.
///
/// # Errors
/// [`ScheduleError`] for a program that cannot run: unknown names, waits for what never comes.
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

/// Takes down what happens.
pub(crate) trait Log {
    /// An operation is done.
    fn span(&mut self, span: Span);
    /// A host thread has done something.
    fn host(&mut self, span: HostSpan);
}

impl Log for Schedule {
    fn span(&mut self, span: Span) {
        self.spans.push(span);
    }

    fn host(&mut self, span: HostSpan) {
        self.host_spans.push(span);
    }
}

/// Takes nothing down.
pub(crate) struct Unlogged;

impl Log for Unlogged {
    fn span(&mut self, _: Span) {}

    fn host(&mut self, _: HostSpan) {}
}

/// Schedules programs one after the other, without new memory for each.
pub(crate) struct Scheduler<'a> {
    profile: &'a Profile,
    device: Device,
    lanes: Device,
    host: Host,
}

/// Streams of the lanes: one a direction.
const LANE_STREAMS: u32 = 2;

/// What a run comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    /// When everything was done.
    pub(crate) end_ns: u64,
    /// How long engines were busy, by what was needed.
    pub(crate) busy_ns: [u64; Need::ALL.len()],
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            device: Device::new(profile),
            lanes: Device::lanes(),
            host: Host::new(),
        }
    }

    /// Runs a program from its beginning to its end.
    pub(crate) fn run<L: Log>(
        &mut self,
        program: &Program,
        log: &mut L,
    ) -> Result<Totals, ScheduleError> {
        let steps: usize = program.threads.iter().map(Vec::len).sum();
        if u32::try_from(steps).is_err() {
            return Err(ScheduleError::TooLong);
        }
        let Self {
            profile,
            device,
            lanes,
            host,
        } = self;
        device.reset(program.streams, steps);
        lanes.reset(LANE_STREAMS, 0);
        lanes.slow_both_ways(program.lanes_percent);
        host.reset(profile, program);
        let mut with = Surroundings {
            profile,
            program,
            device,
            lanes,
            log,
        };
        while let Some(at_ns) = step(host, &mut with)? {
            if at_ns == u64::MAX {
                return Err(ScheduleError::TooLong);
            }
        }
        let host_end_ns = host.ends_ns()?.max().unwrap_or(0);
        let end_ns = host_end_ns.max(with.device.end_ns);
        if end_ns == u64::MAX {
            return Err(ScheduleError::TooLong);
        }
        Ok(Totals {
            end_ns,
            busy_ns: with.device.busy_ns,
        })
    }
}

/// Carries out what happens next, and gives its time; none if nothing is left. At the same time
/// the device goes before the lanes, and both before the host: what ends when a call takes effect
/// ends before it.
fn step<L: Log>(
    host: &mut Host,
    with: &mut Surroundings<'_, L>,
) -> Result<Option<u64>, ScheduleError> {
    let host_next = host.next();
    let host_ns = host_next.map_or(u64::MAX, |(at_ns, _)| at_ns);
    let lanes_next = with.lanes.next().filter(|&(at_ns, _)| at_ns <= host_ns);
    let others_ns = lanes_next.map_or(host_ns, |(at_ns, _)| at_ns);
    if let Some((at_ns, happening)) = with.device.next()
        && at_ns <= others_ns
    {
        with.device.happen(at_ns, happening, with.log);
        host.wake(at_ns, with);
        return Ok(Some(at_ns));
    }
    if let Some((at_ns, happening)) = lanes_next {
        with.lanes.happen(at_ns, happening, &mut Unlogged);
        host.wake_lanes(at_ns, with);
        return Ok(Some(at_ns));
    }
    if let Some((at_ns, thread)) = host_next {
        host.act(thread, at_ns, with)?;
        return Ok(Some(at_ns));
    }
    Ok(None)
}
