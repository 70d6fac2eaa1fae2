//! What runs next, and when it is done.
//!
//! The devices are simulated up to the host's clock, event by event. An operation starts at the
//! first moment at which its predecessor in the stream is done, what it waits for has happened,
//! and its engine is free; starts happen only when something was submitted or is done, so each
//! start has an exact time. What ends at a time is carried out by the first call that comes after
//! it: an operation is never done within the call that submitted it.

use pinlane_driver::{Call, ErrorKind, StreamHandle};

use crate::engine::{Engines, Need};
use crate::faults::FaultKind;
use crate::op::{Doom, Moment, Op, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::{Role, Stream};
use crate::timeline::{Engine, Span, SpanKind};

/// When a stuck operation is given up.
const WATCHDOG_NS: u64 = 10_000_000_000;

/// The first operation of a stream, started and not done.
pub(crate) struct Running {
    stream: Id,
    device: usize,
    sequence: u64,
    engine: Option<Engine>,
    start_ns: u64,
    /// When memory is touched in between, until that has happened.
    middle_ns: Option<u64>,
    end_ns: u64,
}

impl Running {
    fn next_ns(&self) -> u64 {
        self.middle_ns.unwrap_or(self.end_ns)
    }

    /// Nothing of it happens before this time.
    pub(crate) fn not_before(&mut self, at_ns: u64) {
        self.middle_ns = self.middle_ns.map(|middle_ns| middle_ns.max(at_ns));
        self.end_ns = self.end_ns.max(at_ns);
    }
}

impl State {
    /// Puts work at the end of a stream, and gives its sequence number.
    pub(crate) fn submit(&mut self, stream: Id, call: Call, work: Work) -> u64 {
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        let op = Op {
            sequence,
            call,
            work,
            doom: None,
            cancelled: false,
        };
        let queue = &mut self.streams.get_mut(stream).expect("a checked handle").queue;
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
            .min_by_key(|(_, running)| (running.next_ns(), running.sequence))
            .map(|(index, _)| index)
    }

    /// Carries out the next thing that happens to a running operation.
    fn happen(&mut self, index: usize) {
        if self.running[index].middle_ns.take().is_some() {
            let Running { stream, device, .. } = self.running[index];
            self.touch(stream, device, Moment::Middle);
            return;
        }
        let running = self.running.swap_remove(index);
        self.complete(running);
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

    /// Starts the first operation of a stream.
    fn start(&mut self, id: Id, at_ns: u64) {
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.running = true;
        stream.ready_ns = None;
        let device = stream.device;
        let op = stream.queue.front_mut().expect("work in an active stream");
        if let Work::Callback(_) = op.work {
            if let Work::Callback(callback) = std::mem::replace(&mut op.work, Work::CallbackRunning) {
                self.callbacks.hand_out(callback, Ok(()), Some(id));
            }
            return;
        }
        let need = Need::of(&op.work);
        let sequence = op.sequence;
        let engine = self.engine_for(device, need);
        let mut end_ns = at_ns.saturating_add(self.duration_ns(id, device, need));
        if need != Need::Nothing {
            end_ns = self.draw_doom(id, at_ns, end_ns);
        }
        let middle_ns = match &mut self.adversary {
            Some(adversary) if need != Need::Nothing => Some(adversary.middle_ns(at_ns, end_ns)),
            _ => None,
        };
        let running = Running {
            stream: id,
            device,
            sequence,
            engine,
            start_ns: at_ns,
            middle_ns,
            end_ns,
        };
        if need == Need::Nothing && end_ns == at_ns {
            return self.complete(running);
        }
        self.running.push(running);
        if self.adversary.is_some() {
            self.touch(id, device, Moment::Start);
        }
    }

    fn engine_for(&mut self, device: usize, need: Need) -> Option<Engine> {
        if self.adversary.is_some() {
            return Engines::any(need);
        }
        self.devices[device].engines.claim(need)
    }

    /// How long the first operation of a stream takes.
    fn duration_ns(&mut self, id: Id, device: usize, need: Need) -> u64 {
        let profile = &self.config.profile;
        let op = self.streams.get(id).and_then(|stream| stream.queue.front());
        let model_ns = match op.map(|op| &op.work) {
            Some(Work::Transfer(transfer)) => {
                if self.devices[device].engines.opposite_busy(need) {
                    profile.both_ways_ns(transfer.alone_ns)
                } else {
                    transfer.alone_ns
                }
            }
            Some(Work::Memset { bytes, .. }) => profile.device_copy_ns(*bytes as u64),
            Some(Work::Kernel(launch)) => {
                let kernel = &launch.kernel;
                let touched = (kernel.bytes_touched)(&launch.args);
                profile.kernel_ns(touched, (kernel.fixed_ns)(&launch.args))
            }
            _ => 0,
        };
        match (&mut self.adversary, need) {
            (None, _) => model_ns,
            (Some(adversary), Need::Nothing) => match op.map(|op| &op.work) {
                Some(Work::Wait(_)) => 0,
                _ => adversary.lag_ns(),
            },
            (Some(adversary), _) => adversary.duration_ns(model_ns),
        }
    }

    /// Decides whether the operation fails, and gives the time of its end.
    fn draw_doom(&mut self, id: Id, at_ns: u64, end_ns: u64) -> u64 {
        let (doom, end_ns) = if self.injector.hit(FaultKind::StuckCompletion) {
            (Doom::Stuck, at_ns.saturating_add(WATCHDOG_NS))
        } else if self.injector.hit(FaultKind::LateError) {
            (Doom::LateError, end_ns)
        } else {
            return end_ns;
        };
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.queue.front_mut().expect("the started work").doom = Some(doom);
        end_ns
    }

    /// Ends a running operation: its last effects, then whoever waited for it.
    fn complete(&mut self, running: Running) {
        let Running { stream, device, end_ns, .. } = running;
        if let Some(engine) = running.engine
            && self.adversary.is_none()
        {
            self.devices[device].engines.release(engine);
        }
        if self.touch(stream, device, Moment::End) {
            self.record_span(&running);
            self.retire(stream, end_ns);
        }
    }

    /// Takes the first operation of a stream out of it, done.
    pub(crate) fn retire(&mut self, id: Id, at_ns: u64) {
        let stream = self.streams.get_mut(id).expect("an active stream");
        let op = stream.queue.pop_front().expect("the work that is done");
        stream.running = false;
        stream.done = op.sequence;
        if stream.queue.is_empty() {
            let destroyed = stream.destroyed;
            self.active.retain(|&active| active != id);
            if destroyed {
                self.streams.remove(id);
            }
        }
        match op.work {
            Work::Record(event) => {
                if let Some(event) = self.events.get_mut(event)
                    && event.recorded.is_some_and(|point| point.sequence == op.sequence)
                {
                    event.fired_ns = Some(at_ns);
                }
            }
            Work::CallbackRunning => self.callbacks.pending -= 1,
            _ => {}
        }
        self.dispatch(at_ns);
    }

    /// The callback at the head of this stream has returned.
    pub(crate) fn callback_returned(&mut self, id: Id) {
        let stream = self.streams.get(id);
        let head = stream.and_then(|stream| stream.queue.front());
        // A device that was lost meanwhile has forgotten its work.
        if head.is_some_and(|op| matches!(op.work, Work::CallbackRunning)) {
            self.retire(id, self.now_ns);
        }
    }

    /// Nothing completes until [`release`](Self::release).
    pub(crate) fn hold(&mut self) {
        self.catch_up();
        self.held = true;
    }

    /// Ends [`hold`](Self::hold): what would have ended meanwhile ends now at the earliest.
    pub(crate) fn release(&mut self) {
        self.held = false;
        for running in &mut self.running {
            running.not_before(self.now_ns);
        }
        self.dispatch(self.now_ns);
    }

    /// Makes a device unusable: its work is forgotten, and no engine touches memory any more.
    pub(crate) fn kill(&mut self, device: usize, kind: ErrorKind) {
        self.devices[device].fatal = Some(kind.clone());
        self.devices[device].engines.clear();
        self.running.retain(|running| running.device != device);
        let mut gone = Vec::new();
        for (id, stream) in self.streams.iter_mut() {
            if stream.device != device {
                continue;
            }
            stream.running = false;
            for op in stream.queue.drain(..) {
                match op.work {
                    Work::Callback(callback) => {
                        self.callbacks.pending -= 1;
                        self.callbacks.hand_out(callback, Err(kind.clone()), None);
                    }
                    Work::CallbackRunning => self.callbacks.pending -= 1,
                    _ => {}
                }
            }
            if stream.destroyed {
                gone.push(id);
            }
        }
        for id in gone {
            self.streams.remove(id);
        }
        let streams = &self.streams;
        self.active
            .retain(|&id| streams.get(id).is_some_and(|stream| !stream.queue.is_empty()));
    }

    /// Notes what ran where.
    fn record_span(&mut self, running: &Running) {
        let Some(engine) = running.engine else {
            return;
        };
        let stream = self.streams.get(running.stream);
        let op = stream.and_then(|stream| stream.queue.front());
        let (kind, bytes) = match op.map(|op| &op.work) {
            Some(Work::Transfer(transfer)) => (transfer.kind, transfer.bytes),
            Some(Work::Memset { bytes, .. }) => (SpanKind::Memset, *bytes as u64),
            Some(Work::Kernel(launch)) => {
                let bytes = (launch.kernel.bytes_touched)(&launch.args);
                (SpanKind::Kernel(launch.kernel.name), bytes)
            }
            _ => return,
        };
        let span = Span {
            device: running.device as u32,
            engine,
            stream: StreamHandle(running.stream.handle()),
            kind,
            bytes,
            start_ns: running.start_ns,
            end_ns: running.end_ns,
            sequence: running.sequence,
        };
        self.trace.span(&span);
        if self.config.record_timeline {
            self.timeline.push(span);
        }
    }
}
