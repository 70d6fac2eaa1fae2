//! The host: threads, each with its own clock.

use super::device::{Device, OpId};
use super::scheduler::SpanSink;
use super::{Action, HostSpan, HostState, Program, ScheduleError, Step, Work};
use crate::engine::EngineKind;
use crate::{Direction, HostKind, Profile};

/// The state of all host threads.
#[derive(Default)]
pub(super) struct Host {
    threads: Vec<Thread>,
    /// The last recording of each event.
    recordings: Vec<Option<u32>>,
    signals: Vec<bool>,
    /// The last work of each kind and its duration: most chunks have the same.
    durations: [Option<(Work, u64)>; EngineKind::COUNT],
}

/// Everything else that a step involves.
pub(super) struct Machine<'a, S> {
    pub(super) profile: &'a Profile,
    pub(super) program: &'a Program,
    pub(super) device: &'a mut Device,
    pub(super) express: &'a mut Device,
    pub(super) sink: &'a mut S,
}

impl Host {
    /// Starts over, with the threads of a program at their first steps.
    pub(super) fn reset(&mut self, profile: &Profile, program: &Program) {
        self.recordings.clear();
        self.recordings.resize(program.events as usize, None);
        self.signals.clear();
        self.signals.resize(program.signals as usize, false);
        self.threads.clear();
        self.threads.extend(program.threads.iter().map(|steps| {
            let mut thread = Thread {
                step: 0,
                since_ns: 0,
                state: State::Done,
            };
            thread.begin(profile, steps, 0);
            thread
        }));
    }

    /// The thread whose step takes effect next, and when. The first one of several at the same
    /// time.
    pub(super) fn next(&self) -> Option<(u64, usize)> {
        let threads = self.threads.iter().enumerate();
        let acting = threads.filter_map(|(index, thread)| match thread.state {
            State::Acting(at_ns) => Some((at_ns, index)),
            _ => None,
        });
        acting.min()
    }

    /// When each thread ended; an error if one is stuck.
    pub(super) fn ends_ns(&self) -> Result<impl Iterator<Item = u64>, ScheduleError> {
        for (thread, &Thread { step, state, .. }) in self.threads.iter().enumerate() {
            if let State::AwaitingSignal(signal) = state {
                return Err(ScheduleError::Deadlock {
                    thread,
                    step,
                    signal,
                });
            }
        }
        Ok(self.threads.iter().map(|thread| thread.since_ns))
    }

    /// Resumes the threads that wait for work that is now done.
    pub(super) fn wake<S: SpanSink>(&mut self, at_ns: u64, machine: &mut Machine<'_, S>) {
        for index in 0..self.threads.len() {
            if let State::AwaitingOperation(op, stream) = self.threads[index].state
                && machine.device.is_done(op, stream)
            {
                self.resume(index, at_ns, machine);
            }
        }
    }

    /// Resumes the threads whose express copies are now done.
    pub(super) fn wake_express<S: SpanSink>(&mut self, at_ns: u64, machine: &mut Machine<'_, S>) {
        for index in 0..self.threads.len() {
            let Thread {
                step,
                since_ns,
                state,
            } = self.threads[index];
            if let State::AwaitingExpress(op, stream) = state
                && machine.express.is_done(op, stream)
            {
                let tag = machine.program.threads[index][step].tag;
                machine.span(index, HostState::Working, since_ns, at_ns, tag);
                self.advance(index, at_ns, machine);
            }
        }
    }

    /// Carries out the step of a thread that takes effect now.
    pub(super) fn act<S: SpanSink>(
        &mut self,
        index: usize,
        now_ns: u64,
        machine: &mut Machine<'_, S>,
    ) -> Result<(), ScheduleError> {
        let Thread { step, since_ns, .. } = self.threads[index];
        let Step { action, tag } = machine.program.threads[index][step];
        let state = match action {
            Action::HostWork { .. } => HostState::Working,
            _ => HostState::Call,
        };
        machine.span(index, state, since_ns, now_ns, tag);
        self.threads[index].since_ns = now_ns;
        let program = machine.program;
        let exists = |what: &'static str, number: u32, count: u32| {
            if number < count {
                return Ok(());
            }
            Err(ScheduleError::Unknown {
                thread: index,
                step,
                what,
                number,
                count,
            })
        };
        let stream_exists = |stream| exists("stream", stream, program.streams);
        let event_exists = |event| exists("event", event, program.events);
        let signal_exists = |signal| exists("signal", signal, program.signals);
        let recorded = |recordings: &[Option<u32>], event: u32| {
            event_exists(event)?;
            recordings[event as usize].ok_or(ScheduleError::NotRecorded {
                thread: index,
                step,
                event,
            })
        };
        match action {
            Action::Submit { stream, work } => {
                stream_exists(stream)?;
                return self.submit(index, stream, work, tag, machine);
            }
            Action::Record { stream, event } => {
                stream_exists(stream)?;
                event_exists(event)?;
                let recording = machine.device.record(now_ns, stream);
                self.recordings[event as usize] = Some(recording);
            }
            Action::Wait { stream, event } => {
                stream_exists(stream)?;
                let recording = recorded(&self.recordings, event)?;
                machine.device.wait(now_ns, stream, recording);
            }
            Action::AwaitEvent(event) => {
                let recording = recorded(&self.recordings, event)?;
                let (op, stream) = machine.device.recorded_at(recording);
                self.await_operation(index, op, stream, machine);
                return Ok(());
            }
            Action::AwaitStream(stream) => {
                stream_exists(stream)?;
                if let Some(op) = machine.device.last_of(stream) {
                    self.await_operation(index, op, stream, machine);
                    return Ok(());
                }
            }
            Action::Signal(signal) => {
                signal_exists(signal)?;
                self.signal(signal, now_ns, machine);
            }
            Action::AwaitSignal(signal) => {
                signal_exists(signal)?;
                if !self.signals[signal as usize] {
                    self.threads[index].state = State::AwaitingSignal(signal);
                    return Ok(());
                }
            }
            Action::ExpressCopy { direction, ns } => {
                let stream = direction as u32;
                let work = Work::Copy {
                    direction,
                    kind: HostKind::Pageable,
                    bytes: 0,
                };
                let op = machine.express.submit(now_ns, stream, work, ns, tag);
                self.threads[index].state = State::AwaitingExpress(op, stream);
                return Ok(());
            }
            Action::HostWork { .. } => {}
        }
        self.advance(index, now_ns, machine);
        Ok(())
    }

    fn submit<S: SpanSink>(
        &mut self,
        index: usize,
        stream: u32,
        work: Work,
        tag: u32,
        machine: &mut Machine<'_, S>,
    ) -> Result<(), ScheduleError> {
        let now_ns = self.threads[index].since_ns;
        if work.is_empty() {
            self.advance(index, now_ns, machine);
            return Ok(());
        }
        let alone_ns = self.alone_ns(work, machine.profile);
        let op = machine.device.submit(now_ns, stream, work, alone_ns, tag);
        match work {
            // The driver copies a pageable source to its own buffer, in the calling thread.
            Work::Copy {
                direction: Direction::HostToDevice,
                kind: HostKind::Pageable,
                ..
            } => {
                let staged_ns = now_ns.saturating_add(alone_ns);
                machine.span(index, HostState::Staging, now_ns, staged_ns, tag);
                self.advance(index, staged_ns, machine);
            }
            // The call returns when a pageable target is complete.
            Work::Copy {
                direction: Direction::DeviceToHost,
                kind: HostKind::Pageable,
                ..
            } => self.await_operation(index, op, stream, machine),
            _ => self.advance(index, now_ns, machine),
        }
        Ok(())
    }

    fn alone_ns(&mut self, work: Work, profile: &Profile) -> u64 {
        let known = &mut self.durations[work.engine_kind().index()];
        match *known {
            Some((same, alone_ns)) if same == work => alone_ns,
            _ => {
                let alone_ns = work.alone_ns(profile);
                *known = Some((work, alone_ns));
                alone_ns
            }
        }
    }

    fn await_operation<S: SpanSink>(
        &mut self,
        index: usize,
        op: OpId,
        stream: u32,
        machine: &mut Machine<'_, S>,
    ) {
        if machine.device.is_done(op, stream) {
            self.advance(index, self.threads[index].since_ns, machine);
        } else {
            self.threads[index].state = State::AwaitingOperation(op, stream);
        }
    }

    fn signal<S: SpanSink>(&mut self, signal: u32, now_ns: u64, machine: &mut Machine<'_, S>) {
        self.signals[signal as usize] = true;
        for index in 0..self.threads.len() {
            if self.threads[index].state == State::AwaitingSignal(signal) {
                self.resume(index, now_ns, machine);
            }
        }
    }

    /// A thread's wait is over. It wakes up, unless it had not fallen asleep yet.
    fn resume<S: SpanSink>(&mut self, index: usize, at_ns: u64, machine: &mut Machine<'_, S>) {
        let Thread { step, since_ns, .. } = self.threads[index];
        let mut awake_ns = since_ns;
        if at_ns > since_ns {
            awake_ns = at_ns.saturating_add(machine.profile.calls.wake_ns);
            let tag = machine.program.threads[index][step].tag;
            machine.span(index, HostState::Waiting, since_ns, awake_ns, tag);
        }
        self.advance(index, awake_ns, machine);
    }

    /// A thread proceeds to its next step.
    fn advance<S: SpanSink>(&mut self, index: usize, now_ns: u64, machine: &Machine<'_, S>) {
        let thread = &mut self.threads[index];
        thread.step += 1;
        thread.begin(machine.profile, &machine.program.threads[index], now_ns);
    }
}

impl<S: SpanSink> Machine<'_, S> {
    fn span(&mut self, thread: usize, state: HostState, start_ns: u64, end_ns: u64, tag: u32) {
        if start_ns < end_ns {
            self.sink.host(HostSpan {
                thread: u32::try_from(thread).unwrap_or(u32::MAX),
                state,
                start_ns,
                end_ns,
                tag,
            });
        }
    }
}

/// A host thread.
#[derive(Clone, Copy)]
struct Thread {
    /// Index of its current step.
    step: usize,
    /// When that step began, or its call took effect.
    since_ns: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its step takes effect at this time.
    Acting(u64),
    /// Blocked until an operation of a stream is done.
    AwaitingOperation(OpId, u32),
    /// Blocked until an express copy is done.
    AwaitingExpress(OpId, u32),
    /// Blocked until a signal is set.
    AwaitingSignal(u32),
    Done,
}

impl Thread {
    /// Begins the current step, if there is one.
    fn begin(&mut self, profile: &Profile, steps: &[Step], now_ns: u64) {
        self.since_ns = now_ns;
        self.state = match steps.get(self.step) {
            Some(step) => State::Acting(now_ns.saturating_add(step.action.cost_ns(profile))),
            None => State::Done,
        };
    }
}
