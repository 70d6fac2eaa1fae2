//! What runs next, and when it is done.
//!
//! The devices are simulated up to the host's clock, event by event. An operation starts at the
//! first moment at which its predecessor in the stream is done, what it waits for has happened,
//! and its engine is free; starts happen only when something was submitted or is done, so each
//! start has an exact time. What ends at a time is carried out by the first call that comes after
//! it: an operation is never done within the call that submitted it.

use pinlane_driver::Call;

use crate::engine::Need;
use crate::op::{Moment, Op, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::{Role, Stream};

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
        while let Some(index) = self.next(self.now_ns) {
            self.happen(index);
        }
    }

    /// Lets time pass to the next thing that happens, and carries it out; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(index) = self.next(u64::MAX) else {
            return false;
        };
        self.now_ns = self.now_ns.max(self.running[index].next_ns());
        self.happen(index);
        true
    }

    /// The same, if that is not after a deadline.
    pub(crate) fn step_until(&mut self, deadline_ns: u64) -> bool {
        match self.next(deadline_ns) {
            Some(_) => self.step(),
            None => false,
        }
    }

    /// The running operation to which something happens next, no later than `limit_ns`.
    fn next(&self, limit_ns: u64) -> Option<usize> {
        if self.held {
            return None;
        }
        let candidates = self.running.iter().enumerate();
        candidates
            .filter(|(_, running)| running.next_ns() <= limit_ns)
            .min_by_key(|(_, running)| running.key())
            .map(|(index, _)| index)
    }

    /// Carries out the next thing that happens to a running operation.
    fn happen(&mut self, index: usize) {
        if self.running[index].take_middle() {
            let (stream, device) = self.running[index].place();
            self.touch(stream, device, Moment::Middle);
            return;
        }
        let running = self.running.swap_remove(index);
        let at_ns = running.next_ns();
        self.complete(running);
        self.dispatch(at_ns);
    }

    /// Starts whatever can start at this time.
    pub(crate) fn dispatch(&mut self, at_ns: u64) {
        while !self.held {
            let mut best = None;
            for position in 0..self.active.len() {
                let id = self.active[position];
                let Some(key) = self.start_key(id, at_ns) else {
                    continue;
                };
                if best.is_none_or(|(best_key, _)| key < best_key) {
                    best = Some((key, id));
                }
            }
            match best {
                Some((_, id)) => self.start(id, at_ns),
                None => return,
            }
        }
    }

    /// Whether the first operation of a stream can start, and how early it is in the queue for
    /// its engine: by priority, then by when it became ready, then by submission.
    fn start_key(&mut self, id: Id, at_ns: u64) -> Option<(i32, u64, u64)> {
        let stream = self.streams.get(id)?;
        let op = stream.queue.front()?;
        if stream.running || !self.is_ready(stream, op) {
            return None;
        }
        let (need, sequence) = (Need::of(&op.work), op.sequence);
        let (device, priority) = (stream.device, stream.priority);
        let stream = self.streams.get_mut(id)?;
        let ready_ns = *stream.ready_ns.get_or_insert(at_ns);
        // A seeded run has no engines to wait for.
        let free = self.adversary.is_some() || self.devices[device].engines.is_free(need);
        free.then_some((priority, ready_ns, sequence))
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
                Work::Wait(point) => self.passed(point),
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
        for running in &mut self.running {
            running.not_before(self.now_ns);
        }
        self.dispatch(self.now_ns);
    }
}
