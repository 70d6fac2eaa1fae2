//! The event loop: what happens next, and what can start then.
//!
//! Devices are simulated up to the host's clock, event by event. By the rules of
//! [`pinlane_model::engine_rules`], an operation starts as soon as its predecessor and everything it waits
//! for are done, the hand-over between engines is over, and its engine is idle. That can only change
//! with a submission, a completion or the end of a hand-over, so every start has an exact time.
//! Completions are carried out by the first call after them: an operation is never done within the
//! call that submitted it.

use pinlane_driver::Call;
use pinlane_model::engine_rules::QueuePosition;

use crate::operation::{Moment, Operation, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::{Role, Stream};

/// What happens next.
#[derive(Clone, Copy)]
enum NextEvent {
    /// The running operation at this index reaches its middle or its end.
    Running(usize),
    /// The stream at this index of the ready times can proceed.
    Ready(usize),
}

impl State {
    /// Submits work to a stream; returns its sequence number.
    pub(crate) fn submit(&mut self, stream: Id, call: Call, work: Work) -> u64 {
        self.last_sequence += 1;
        self.idle_polls = 0;
        let sequence = self.last_sequence;
        self.trace.add(stream.handle());
        let op = Operation {
            sequence,
            submitted_ns: self.clock_ns(),
            call,
            work,
            failure: None,
            cancelled: false,
        };
        let target = self.streams.get_mut(stream).expect("a checked handle");
        target.queue.push_back(op);
        if target.queue.len() == 1 {
            self.active.push(stream);
        }
        self.dispatch(self.now_ns);
        sequence
    }

    /// Carries out everything up to now, or up to where the host threads that run have come.
    pub(crate) fn catch_up(&mut self) {
        loop {
            // Each event may let a thread run again, which then limits how far the device may go.
            let horizon_ns = self.threads.horizon_ns().unwrap_or(0);
            let limit_ns = self.now_ns.max(horizon_ns);
            if let Some((at_ns, next)) = self.next(limit_ns) {
                self.now_ns = self.now_ns.max(at_ns);
                self.handle(at_ns, next);
            } else {
                self.now_ns = limit_ns;
                if !self.threads.end_waits(limit_ns) {
                    return;
                }
            }
        }
    }

    /// Advances time to the next event and carries it out; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some((at_ns, next)) = self.next(u64::MAX) else {
            return false;
        };
        self.now_ns = self.now_ns.max(at_ns);
        self.handle(at_ns, next);
        true
    }

    /// The same, unless that is after a deadline.
    pub(crate) fn step_until(&mut self, deadline_ns: u64) -> bool {
        self.next(deadline_ns).is_some() && self.step()
    }

    /// What happens next, and when, if that is no later than `limit_ns`. Ends precede other events
    /// at the same time.
    fn next(&self, limit_ns: u64) -> Option<(u64, NextEvent)> {
        if self.held {
            return None;
        }
        let running = self.running.iter().enumerate();
        let ends = running.map(|(index, it)| (it.key(), NextEvent::Running(index)));
        let ready = self.ready_times.iter().enumerate();
        let ready = ready.map(|(index, it)| ((it.0, u64::MAX, u64::MAX), NextEvent::Ready(index)));
        let ((at_ns, ..), next) = ends.chain(ready).min_by_key(|&(key, _)| key)?;
        (at_ns <= limit_ns).then_some((at_ns, next))
    }

    /// Carries out an event.
    fn handle(&mut self, at_ns: u64, next: NextEvent) {
        let index = match next {
            NextEvent::Running(index) => index,
            NextEvent::Ready(index) => {
                self.ready_times.swap_remove(index);
                return self.dispatch(at_ns);
            }
        };
        let running = &mut self.running[index];
        if running.middle_ns.take().is_some() {
            let (stream, device) = (running.stream, running.device);
            self.apply(stream, device, Moment::Middle);
            return;
        }
        let running = self.running.swap_remove(index);
        self.complete(running);
        self.dispatch(at_ns);
    }

    /// Starts everything that can start at this time.
    pub(crate) fn dispatch(&mut self, at_ns: u64) {
        while !self.held {
            let ready = (0..self.active.len()).filter_map(|index| {
                let id = self.active[index];
                Some((self.queue_position(id, at_ns)?, id))
            });
            match ready.min() {
                Some((_, id)) => self.start(id, at_ns),
                None => break,
            }
        }
        self.wake_threads(at_ns);
    }

    /// The queue position of a stream's first operation, if it can start.
    fn queue_position(&mut self, id: Id, at_ns: u64) -> Option<QueuePosition> {
        let stream = self.streams.get(id)?;
        let op = stream.queue.front()?;
        if stream.running || !self.is_ready(stream, op) {
            return None;
        }
        let (need, sequence) = (op.work.engine_kind(), op.sequence);
        let (device, priority) = (stream.device, stream.priority);
        let ready_ns = match stream.ready_ns {
            Some(ready_ns) => ready_ns,
            None => self.get_ready(id, at_ns),
        };
        let position = QueuePosition {
            priority,
            ready_ns,
            sequence,
        };
        match need {
            // A seeded run has no engines.
            _ if self.adversary.is_some() => Some(position),
            None => (ready_ns <= at_ns).then_some(QueuePosition::marker(sequence)),
            Some(need) => {
                let free = ready_ns <= at_ns && self.devices[device].engines.is_free(need);
                free.then_some(position)
            }
        }
    }

    /// The first operation of a stream now waits for an engine only. Returns from when on.
    fn get_ready(&mut self, id: Id, at_ns: u64) -> u64 {
        let stream = self.streams.get(id).expect("an active stream");
        let device = &self.devices[stream.device];
        let default = self.streams.get(device.default_stream);
        let after = match stream.role {
            Role::NonBlocking => None,
            Role::Blocking => default.map(|default| default.earliest),
            Role::Default => Some(device.blocking_work),
        };
        let plain = self.adversary.is_none();
        let stream = self.streams.get_mut(id).expect("an active stream");
        if let Some(after) = after {
            stream.earliest.after(&after);
        }
        let op = stream.queue.front().expect("work in an active stream");
        let least_ns = at_ns.max(op.submitted_ns);
        let ready_ns = match op.work.engine_kind() {
            Some(need) if plain => {
                let earliest_ns = stream.earliest.ns(device.engines.serving(need));
                earliest_ns.max(least_ns)
            }
            _ => least_ns,
        };
        stream.ready_ns = Some(ready_ns);
        if ready_ns > at_ns {
            self.ready_times.push((ready_ns, id));
        }
        ready_ns
    }

    /// Whether stream order and events allow the first operation of a stream to start.
    fn is_ready(&self, stream: &Stream, op: &Operation) -> bool {
        let device = &self.devices[stream.device];
        let in_turn = match stream.role {
            Role::NonBlocking => true,
            Role::Blocking => {
                let default = self.streams.get(device.default_stream);
                default.is_none_or(|default| default.is_past(op.sequence))
            }
            Role::Default => {
                let mut others = self.active.iter().filter_map(|&id| self.streams.get(id));
                others.all(|other| !other.blocks(stream) || other.is_past(op.sequence))
            }
        };
        in_turn && !matches!(op.work, Work::Wait(point, _) if !self.passed(point))
    }

    /// Holds all completions until [`release`](Self::release).
    pub(crate) fn hold(&mut self) {
        self.catch_up();
        self.held = true;
    }

    /// Ends [`hold`](Self::hold): everything due meanwhile ends now.
    pub(crate) fn release(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        for device in 0..self.devices.len() {
            self.devices[device].engines.not_before(self.now_ns);
            self.update_ends(device);
        }
        for running in &mut self.running {
            running.not_before(self.now_ns);
        }
        self.ready_times.retain(|&(at_ns, _)| at_ns > self.now_ns);
        self.dispatch(self.now_ns);
    }
}
