//! The host: threads, each with its own clock.

use super::device::{Device, OpId};
use super::scheduler::SpanSink;
use super::{Action, HostSpan, HostState, Program, ScheduleError, Step, Work};
use crate::engine_rules::EngineKind;
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

/// A running program, and everything that its steps involve.
pub(super) struct Run<'a, S> {
    pub(super) profile: &'a Profile,
    pub(super) program: &'a Program,
    pub(super) device: &'a mut Device,
    pub(super) express: &'a mut Device,
    pub(super) host: &'a mut Host,
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

    /// Duration of work alone.
    fn alone_ns(&mut self, work: Work, profile: &Profile) -> u64 {
        let known = &mut self.durations[work.engine_kind().index()];
        match *known {
            Some((same, alone_ns)) if same == work => alone_ns,
            _ => known.insert((work, work.alone_ns(profile))).1,
        }
    }
}

impl<S: SpanSink> Run<'_, S> {
    /// Resumes the threads that wait for work that is now done.
    pub(super) fn wake(&mut self, at_ns: u64) {
        for index in 0..self.host.threads.len() {
            if let State::AwaitingOperation(op, stream) = self.host.threads[index].state
                && self.device.is_done(op, stream)
            {
                self.resume(index, at_ns);
            }
        }
    }

    /// Resumes the threads whose express copies are now done.
    pub(super) fn wake_express(&mut self, at_ns: u64) {
        for index in 0..self.host.threads.len() {
            let thread = self.host.threads[index];
            if let State::AwaitingExpress(op, stream) = thread.state
                && self.express.is_done(op, stream)
            {
                self.span(index, HostState::Working, at_ns);
                self.advance(index, at_ns);
            }
        }
    }

    /// Carries out the step of a thread that takes effect now.
    pub(super) fn act(&mut self, thread: usize, now_ns: u64) -> Result<(), ScheduleError> {
        let step = self.host.threads[thread].step;
        let Step { action, tag } = self.program.threads[thread][step];
        let state = match action {
            Action::HostWork { .. } => HostState::Working,
            _ => HostState::Call,
        };
        self.span(thread, state, now_ns);
        self.host.threads[thread].since_ns = now_ns;
        let program = self.program;
        let exists = |what: &'static str, number: u32, count: u32| match number < count {
            true => Ok(()),
            false => Err(ScheduleError::Unknown {
                thread,
                step,
                what,
                number,
                count,
            }),
        };
        let stream_exists = |stream| exists("stream", stream, program.streams);
        let event_exists = |event| exists("event", event, program.events);
        let signal_exists = |signal| exists("signal", signal, program.signals);
        let recorded = |recordings: &[Option<u32>], event: u32| {
            event_exists(event)?;
            recordings[event as usize].ok_or(ScheduleError::NotRecorded {
                thread,
                step,
                event,
            })
        };
        let awaited = match action {
            Action::Submit { stream, work } => {
                stream_exists(stream)?;
                self.submit(thread, stream, work, tag);
                return Ok(());
            }
            Action::Record { stream, event } => {
                stream_exists(stream)?;
                event_exists(event)?;
                let recording = self.device.record(now_ns, stream);
                self.host.recordings[event as usize] = Some(recording);
                None
            }
            Action::Wait { stream, event } => {
                stream_exists(stream)?;
                let recording = recorded(&self.host.recordings, event)?;
                self.device.wait(now_ns, stream, recording);
                None
            }
            Action::AwaitEvent(event) => {
                let recording = recorded(&self.host.recordings, event)?;
                let (op, stream) = self.device.recorded_at(recording);
                let is_done = self.device.is_done(op, stream);
                (!is_done).then_some(State::AwaitingOperation(op, stream))
            }
            Action::AwaitStream(stream) => {
                stream_exists(stream)?;
                let last = self.device.last_of(stream);
                last.map(|op| State::AwaitingOperation(op, stream))
            }
            Action::Signal(signal) => {
                signal_exists(signal)?;
                self.signal(signal, now_ns);
                None
            }
            Action::AwaitSignal(signal) => {
                signal_exists(signal)?;
                let is_set = self.host.signals[signal as usize];
                (!is_set).then_some(State::AwaitingSignal(signal))
            }
            Action::ExpressCopy { direction, ns } => {
                let stream = direction as u32;
                let work = Work::Copy {
                    direction,
                    kind: HostKind::Pageable,
                    bytes: 0,
                };
                let op = self.express.submit(now_ns, stream, work, ns, tag);
                Some(State::AwaitingExpress(op, stream))
            }
            Action::HostWork { .. } => None,
        };
        match awaited {
            Some(state) => self.host.threads[thread].state = state,
            None => self.advance(thread, now_ns),
        }
        Ok(())
    }

    fn submit(&mut self, index: usize, stream: u32, work: Work, tag: u32) {
        let now_ns = self.host.threads[index].since_ns;
        if work.is_empty() {
            return self.advance(index, now_ns);
        }
        let alone_ns = self.host.alone_ns(work, self.profile);
        let op = self.device.submit(now_ns, stream, work, alone_ns, tag);
        match work {
            Work::Copy {
                direction,
                kind: HostKind::Pageable,
                ..
            } => match direction {
                // The driver copies a pageable source to its own buffer, in the calling thread.
                Direction::HostToDevice => {
                    let staged_ns = now_ns.saturating_add(alone_ns);
                    self.span(index, HostState::Staging, staged_ns);
                    self.advance(index, staged_ns);
                }
                // The call returns when a pageable target is complete.
                Direction::DeviceToHost if self.device.is_done(op, stream) => {
                    self.advance(index, now_ns);
                }
                Direction::DeviceToHost => {
                    self.host.threads[index].state = State::AwaitingOperation(op, stream);
                }
            },
            _ => self.advance(index, now_ns),
        }
    }

    fn signal(&mut self, signal: u32, now_ns: u64) {
        self.host.signals[signal as usize] = true;
        for index in 0..self.host.threads.len() {
            if self.host.threads[index].state == State::AwaitingSignal(signal) {
                self.resume(index, now_ns);
            }
        }
    }

    /// A thread's wait is over. It wakes up, unless it had not fallen asleep yet.
    fn resume(&mut self, index: usize, at_ns: u64) {
        let mut awake_ns = self.host.threads[index].since_ns;
        if at_ns > awake_ns {
            awake_ns = at_ns.saturating_add(self.profile.calls.wake_ns);
            self.span(index, HostState::Waiting, awake_ns);
        }
        self.advance(index, awake_ns);
    }

    /// A thread proceeds to its next step.
    fn advance(&mut self, index: usize, now_ns: u64) {
        let thread = &mut self.host.threads[index];
        thread.step += 1;
        thread.begin(self.profile, &self.program.threads[index], now_ns);
    }

    /// What a thread has done since its step began or took effect.
    fn span(&mut self, index: usize, state: HostState, end_ns: u64) {
        let Thread { step, since_ns, .. } = self.host.threads[index];
        if since_ns < end_ns {
            self.sink.host(HostSpan {
                thread: u32::try_from(index).unwrap_or(u32::MAX),
                state,
                start_ns: since_ns,
                end_ns,
                tag: self.program.threads[index][step].tag,
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
