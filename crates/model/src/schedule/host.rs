//! The host's side of a schedule: threads, each with a clock of its own.

use super::ScheduleError;
use super::device::Device;
use super::names::Names;
use super::program::{Action, Program, Step, Work};
use super::queue::OpId;
use super::run::Log;
use super::span::{HostSpan, HostState};
use super::thread::{State, Thread};
use crate::engine::Need;
use crate::{Direction, HostKind, Profile};

/// All threads.
pub(super) struct Host {
    threads: Vec<Thread>,
    /// The last recording of each event.
    recordings: Vec<Option<u32>>,
    posts: Vec<bool>,
    /// The last work of each kind and what it takes alone: chunks are all alike.
    known: [Option<(Work, u64)>; Need::ALL.len()],
}

/// What a step of a thread works with.
pub(super) struct Surroundings<'a, L> {
    pub(super) profile: &'a Profile,
    pub(super) program: &'a Program,
    pub(super) device: &'a mut Device,
    pub(super) lanes: &'a mut Device,
    pub(super) log: &'a mut L,
}

impl Host {
    pub(super) fn new() -> Self {
        Self {
            threads: Vec::new(),
            recordings: Vec::new(),
            posts: Vec::new(),
            known: [None; Need::ALL.len()],
        }
    }

    /// Forgets everything, and has the threads of a program at their first steps.
    pub(super) fn reset(&mut self, profile: &Profile, program: &Program) {
        self.recordings.clear();
        self.recordings.resize(program.events as usize, None);
        self.posts.clear();
        self.posts.resize(program.posts as usize, false);
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

    /// The thread whose step takes effect next, and when. At the same time the first thread goes
    /// first.
    pub(super) fn next(&self) -> Option<(u64, usize)> {
        let mut next = None;
        for (index, thread) in self.threads.iter().enumerate() {
            if let State::Acting(at_ns) = thread.state
                && next.is_none_or(|(least_ns, _)| at_ns < least_ns)
            {
                next = Some((at_ns, index));
            }
        }
        next
    }

    /// When each thread had done its last step; an error if one never does.
    pub(super) fn ends_ns(&self) -> Result<impl Iterator<Item = u64>, ScheduleError> {
        for (thread, &Thread { step, state, .. }) in self.threads.iter().enumerate() {
            if let State::ForPost(post) = state {
                return Err(ScheduleError::Deadlock { thread, step, post });
            }
        }
        Ok(self.threads.iter().map(|thread| thread.since_ns))
    }

    /// Lets the threads go on that wait for work that is done at this time.
    pub(super) fn wake<L: Log>(&mut self, at_ns: u64, with: &mut Surroundings<'_, L>) {
        for index in 0..self.threads.len() {
            if let State::ForOperation(op, stream) = self.threads[index].state
                && with.device.is_done(op, stream)
            {
                self.resume(index, at_ns, with);
            }
        }
    }

    /// Lets the threads go on whose work the lanes have done at this time.
    pub(super) fn wake_lanes<L: Log>(&mut self, at_ns: u64, with: &mut Surroundings<'_, L>) {
        for index in 0..self.threads.len() {
            let Thread {
                step,
                since_ns,
                state,
            } = self.threads[index];
            if let State::ForLanes(op, stream) = state
                && with.lanes.is_done(op, stream)
            {
                let tag = with.program.threads[index][step].tag;
                with.log(index, HostState::Working, since_ns, at_ns, tag);
                self.advance(index, at_ns, with);
            }
        }
    }

    /// Carries out the step of a thread that takes effect now.
    pub(super) fn act<L: Log>(
        &mut self,
        index: usize,
        now_ns: u64,
        with: &mut Surroundings<'_, L>,
    ) -> Result<(), ScheduleError> {
        let Thread { step, since_ns, .. } = self.threads[index];
        let Step { action, tag } = with.program.threads[index][step];
        let state = match action {
            Action::HostWork { .. } => HostState::Working,
            _ => HostState::Call,
        };
        with.log(index, state, since_ns, now_ns, tag);
        self.threads[index].since_ns = now_ns;
        let names = Names {
            program: with.program,
            thread: index,
            step,
        };
        let recorded = |recordings: &[Option<u32>], event: u32| {
            names.event(event)?;
            let recording = recordings[event as usize];
            recording.ok_or(ScheduleError::NotRecorded {
                thread: index,
                step,
                event,
            })
        };
        match action {
            Action::Submit { stream, work } => {
                names.stream(stream)?;
                return self.submit(index, stream, work, tag, with);
            }
            Action::Record { stream, event } => {
                names.stream(stream)?;
                names.event(event)?;
                let recording = with.device.record(now_ns, stream);
                self.recordings[event as usize] = Some(recording);
            }
            Action::Wait { stream, event } => {
                names.stream(stream)?;
                let recording = recorded(&self.recordings, event)?;
                with.device.wait(now_ns, stream, recording);
            }
            Action::AwaitEvent(event) => {
                let recording = recorded(&self.recordings, event)?;
                let (op, stream) = with.device.recorded_at(recording);
                self.await_operation(index, op, stream, with);
                return Ok(());
            }
            Action::AwaitStream(stream) => {
                names.stream(stream)?;
                if let Some(op) = with.device.last_of(stream) {
                    self.await_operation(index, op, stream, with);
                    return Ok(());
                }
            }
            Action::Post(post) => {
                names.post(post)?;
                self.post(post, now_ns, with);
            }
            Action::AwaitPost(post) => {
                names.post(post)?;
                if !self.posts[post as usize] {
                    self.threads[index].state = State::ForPost(post);
                    return Ok(());
                }
            }
            Action::Lanes { direction, ns } => {
                let stream = direction as u32;
                let work = Work::Copy {
                    direction,
                    kind: HostKind::Pageable,
                    bytes: 0,
                };
                let op = with.lanes.submit(now_ns, stream, work, ns, tag);
                self.threads[index].state = State::ForLanes(op, stream);
                return Ok(());
            }
            Action::HostWork { .. } => {}
        }
        self.advance(index, now_ns, with);
        Ok(())
    }

    fn submit<L: Log>(
        &mut self,
        index: usize,
        stream: u32,
        work: Work,
        tag: u32,
        with: &mut Surroundings<'_, L>,
    ) -> Result<(), ScheduleError> {
        let now_ns = self.threads[index].since_ns;
        if work.is_empty() {
            self.advance(index, now_ns, with);
            return Ok(());
        }
        let alone_ns = self.alone_ns(work, with.profile);
        let op = with.device.submit(now_ns, stream, work, alone_ns, tag);
        match work {
            // The driver moves a pageable source through its own buffer, on the caller's time.
            Work::Copy {
                direction: Direction::HostToDevice,
                kind: HostKind::Pageable,
                ..
            } => {
                let staged_ns = now_ns.saturating_add(alone_ns);
                with.log(index, HostState::Staging, now_ns, staged_ns, tag);
                self.advance(index, staged_ns, with);
            }
            // It returns when a pageable target has its bytes.
            Work::Copy {
                direction: Direction::DeviceToHost,
                kind: HostKind::Pageable,
                ..
            } => self.await_operation(index, op, stream, with),
            _ => self.advance(index, now_ns, with),
        }
        Ok(())
    }

    fn alone_ns(&mut self, work: Work, profile: &Profile) -> u64 {
        let known = &mut self.known[work.need().index()];
        match *known {
            Some((same, alone_ns)) if same == work => alone_ns,
            _ => {
                let alone_ns = work.alone_ns(profile);
                *known = Some((work, alone_ns));
                alone_ns
            }
        }
    }

    fn await_operation<L: Log>(
        &mut self,
        index: usize,
        op: OpId,
        stream: u32,
        with: &mut Surroundings<'_, L>,
    ) {
        if with.device.is_done(op, stream) {
            self.advance(index, self.threads[index].since_ns, with);
        } else {
            self.threads[index].state = State::ForOperation(op, stream);
        }
    }

    fn post<L: Log>(&mut self, post: u32, now_ns: u64, with: &mut Surroundings<'_, L>) {
        self.posts[post as usize] = true;
        for index in 0..self.threads.len() {
            if self.threads[index].state == State::ForPost(post) {
                self.resume(index, now_ns, with);
            }
        }
    }

    /// What a thread waits for has happened: it wakes up, unless it had not begun to sleep.
    fn resume<L: Log>(&mut self, index: usize, at_ns: u64, with: &mut Surroundings<'_, L>) {
        let Thread { step, since_ns, .. } = self.threads[index];
        let mut awake_ns = since_ns;
        if at_ns > since_ns {
            awake_ns = at_ns.saturating_add(with.profile.calls.wake_ns);
            let tag = with.program.threads[index][step].tag;
            with.log(index, HostState::Waiting, since_ns, awake_ns, tag);
        }
        self.advance(index, awake_ns, with);
    }

    /// A thread goes on to its next step.
    fn advance<L: Log>(&mut self, index: usize, now_ns: u64, with: &Surroundings<'_, L>) {
        let thread = &mut self.threads[index];
        thread.step += 1;
        thread.begin(with.profile, &with.program.threads[index], now_ns);
    }
}

impl<L: Log> Surroundings<'_, L> {
    fn log(&mut self, thread: usize, state: HostState, start_ns: u64, end_ns: u64, tag: u32) {
        if start_ns < end_ns {
            self.log.host(HostSpan {
                thread: u32::try_from(thread).unwrap_or(u32::MAX),
                state,
                start_ns,
                end_ns,
                tag,
            });
        }
    }
}
