//! What runs next, and when it is done.
//!
//! The devices are simulated up to the host's clock, event by event. An operation starts at the
//! first moment at which its predecessor in the stream is done, what it waits for has happened,
//! the hand-over between their engines is over, and its engine is free, by the rules of
//! [`pinlane_model::engine`]; starts happen only when something was submitted or is done or a
//! hand-over is over, so each start has an exact time. What ends at a time is carried out by the first call that comes after
//! it: an operation is never done within the call that submitted it.

use pinlane_driver::Call;
use pinlane_model::engine::QueuePosition;

use crate::op::{Moment, Op, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::{Role, Stream};

/// What happens next.
#[derive(Clone, Copy)]
enum Next {
    /// Something to the running operation at this place.
    Running(usize),
    /// The hand-over for the alarm at this place is over.
    Alarm(usize),
}

impl State {
    /// Puts work at the end of a stream, and gives its sequence number.
    pub(crate) fn submit(&mut self, stream: Id, call: Call, work: Work) -> u64 {
        self.last_sequence += 1;
        self.polls_in_vain = 0;
        let sequence = self.last_sequence;
        self.trace.add(stream.handle());
        let op = Op {
            sequence,
            call,
            work,
            doom: None,
            cancelled: false,
        };
        let queue = &mut self
            .streams
            .get_mut(stream)
            .expect("a checked handle")
            .queue;
        queue.push_back(op);
        if queue.len() == 1 {
            self.active.push(stream);
        }
        self.dispatch(self.now_ns);
        sequence
    }

    /// Carries out what happens up to now.
    pub(crate) fn catch_up(&mut self) {
        while let Some((at_ns, next)) = self.next(self.now_ns) {
            self.happen(at_ns, next);
        }
    }

    /// Lets time pass to the next thing that happens, and carries it out; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some((at_ns, next)) = self.next(u64::MAX) else {
            return false;
        };
        self.now_ns = self.now_ns.max(at_ns);
        self.happen(at_ns, next);
        true
    }

    /// The same, if that is not after a deadline.
    pub(crate) fn step_until(&mut self, deadline_ns: u64) -> bool {
        match self.next(deadline_ns) {
            Some(_) => self.step(),
            None => false,
        }
    }

    /// What happens next, and when, if that is no later than `limit_ns`. At the same time
    /// operations end before hand-overs do.
    fn next(&self, limit_ns: u64) -> Option<(u64, Next)> {
        if self.held {
            return None;
        }
        let running = self.running.iter().enumerate();
        let ends = running.map(|(index, running)| (running.key(), Next::Running(index)));
        let alarms = self.alarms.iter().enumerate();
        let alarms = alarms.map(|(index, &(at_ns, _))| ((at_ns, u64::MAX), Next::Alarm(index)));
        ends.chain(alarms)
            .min_by_key(|&(key, _)| key)
            .map(|((at_ns, _), next)| (at_ns, next))
            .filter(|&(at_ns, _)| at_ns <= limit_ns)
    }

    /// Carries out what happens next.
    fn happen(&mut self, at_ns: u64, next: Next) {
        let index = match next {
            Next::Running(index) => index,
            Next::Alarm(index) => {
                self.alarms.swap_remove(index);
                return self.dispatch(at_ns);
            }
        };
        if self.running[index].take_middle() {
            let (stream, device) = self.running[index].place();
            self.touch(stream, device, Moment::Middle);
            return;
        }
        let running = self.running.swap_remove(index);
        self.complete(running);
        self.dispatch(at_ns);
    }

    /// Starts whatever can start at this time.
    pub(crate) fn dispatch(&mut self, at_ns: u64) {
        while !self.held {
            let mut best = None;
            for position in 0..self.active.len() {
                let id = self.active[position];
                let Some(turn) = self.turn(id, at_ns) else {
                    continue;
                };
                if best.is_none_or(|(first, _)| turn < first) {
                    best = Some((turn, id));
                }
            }
            match best {
                Some((_, id)) => self.start(id, at_ns),
                None => return,
            }
        }
    }

    /// The turn of the first operation of a stream, if it can start.
    fn turn(&mut self, id: Id, at_ns: u64) -> Option<QueuePosition> {
        let stream = self.streams.get(id)?;
        let op = stream.queue.front()?;
        if stream.running || !self.is_ready(stream, op) {
            return None;
        }
        let (need, sequence) = (op.work.need(), op.sequence);
        let (device, priority) = (stream.device, stream.priority);
        let ready_ns = match stream.ready_ns {
            Some(ready_ns) => ready_ns,
            None => self.get_ready(id, at_ns),
        };
        let turn = QueuePosition {
            priority,
            ready_ns,
            sequence,
        };
        match need {
            // A seeded run has no engines to wait for.
            _ if self.adversary.is_some() => Some(turn),
            None => Some(QueuePosition::marker(sequence)),
            Some(need) => {
                let free = ready_ns <= at_ns && self.devices[device].engines.is_free(need);
                free.then_some(turn)
            }
        }
    }

    /// Whether the order of streams and events lets the first operation of a stream start.
    fn is_ready(&self, stream: &Stream, op: &Op) -> bool {
        let device = &self.devices[stream.device];
        let in_turn = match stream.role {
            Role::NonBlocking => true,
            Role::Blocking => self
                .streams
                .get(device.default_stream)
                .is_none_or(|default| default.is_past(op.sequence)),
            Role::Default => self.active.iter().all(|&id| {
                self.streams.get(id).is_none_or(|other| {
                    other.device != stream.device
                        || other.role != Role::Blocking
                        || other.is_past(op.sequence)
                })
            }),
        };
        in_turn
            && match op.work {
                Work::Wait(point, _) => self.passed(point),
                _ => true,
            }
    }

    /// Nothing completes until [`release`](Self::release).
    pub(crate) fn hold(&mut self) {
        self.catch_up();
        self.held = true;
    }

    /// Ends [`hold`](Self::hold): what would have ended meanwhile ends now at the earliest.
    pub(crate) fn release(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        for device in 0..self.devices.len() {
            self.devices[device].engines.not_before(self.now_ns);
            self.retime(device);
        }
        for running in &mut self.running {
            running.not_before(self.now_ns);
        }
        self.alarms.retain(|&(at_ns, _)| at_ns > self.now_ns);
        self.dispatch(self.now_ns);
    }
}
