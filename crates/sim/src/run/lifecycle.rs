//! The life of an operation from start to end, and the end of a device.

use pinlane_driver::{Error, ErrorKind};
use pinlane_model::engine_rules::{EngineKind, Token};

use crate::faults::FaultKind;
use crate::operation::{InjectedFailure, Moment, Operation, Work};
use crate::slab::Id;
use crate::state::State;
use crate::stream::Role;
use crate::timeline::{Engine, Span, SpanKind};

/// When the watchdog ends a stuck operation.
const WATCHDOG_NS: u64 = 10_000_000_000;

/// A running operation, which is the first of its stream.
pub(crate) struct Running {
    pub(super) stream: Id,
    pub(crate) device: usize,
    sequence: u64,
    submitted_ns: u64,
    engine: Option<Engine>,
    /// Its hold on the engine; `None` in a seeded run.
    pub(crate) token: Option<Token>,
    start_ns: u64,
    /// It does not end before, even if it has left its engine.
    least_end_ns: u64,
    /// The kind of its engine and when it left it, if it has.
    left_engine: Option<(EngineKind, u64)>,
    /// When it accesses memory in between, until that has happened.
    pub(super) middle_ns: Option<u64>,
    pub(crate) end_ns: u64,
}

impl Running {
    /// When its next event is; the order of submission orders those of the same time. Threads with clocks of
    /// their own submit in the order of these, whatever the sequence numbers are.
    pub(super) fn key(&self) -> (u64, u64, u64) {
        let next_ns = self.middle_ns.unwrap_or(self.end_ns);
        (next_ns, self.submitted_ns, self.sequence)
    }

    /// Delays all its events to this time at least.
    pub(super) fn not_before(&mut self, at_ns: u64) {
        self.middle_ns = self.middle_ns.map(|middle_ns| middle_ns.max(at_ns));
        self.end_ns = self.end_ns.max(at_ns);
    }
}

impl State {
    /// Starts the first operation of a stream.
    pub(super) fn start(&mut self, id: Id, at_ns: u64) {
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.running = true;
        let ready_ns = stream.ready_ns.take().unwrap_or(at_ns);
        let device = stream.device;
        let op = stream.queue.front_mut().expect("work in an active stream");
        if let Work::Callback(_) = op.work {
            self.check_behind_callback(id);
            let stream = self.streams.get_mut(id).expect("an active stream");
            let op = stream.queue.front_mut().expect("its callback");
            if let Work::Callback(callback) = std::mem::replace(&mut op.work, Work::CallbackRunning)
            {
                self.callbacks.enqueue(callback, Ok(()), Some(id));
            }
            return;
        }
        let (need, tail_ns) = (op.work.engine_kind(), op.work.tail_ns());
        let (sequence, submitted_ns) = (op.sequence, op.submitted_ns);
        let mut duration_ns = self.duration_ns(id, need);
        if need.is_some() {
            duration_ns = self.inject_failure(id, duration_ns);
        }
        let end_ns = at_ns.saturating_add(duration_ns);
        let middle_ns = match &mut self.adversary {
            Some(adversary) if need.is_some() => Some(adversary.middle_ns(at_ns, end_ns)),
            _ => None,
        };
        let mut running = Running {
            stream: id,
            device,
            sequence,
            submitted_ns,
            engine: need.map(EngineKind::first_engine),
            token: None,
            start_ns: at_ns,
            least_end_ns: 0,
            left_engine: None,
            middle_ns,
            end_ns,
        };
        if need.is_none() && end_ns == at_ns {
            return self.complete(running);
        }
        if let Some(need) = need
            && self.adversary.is_none()
        {
            if tail_ns > 0 {
                let takes_ns = duration_ns.saturating_add(tail_ns);
                running.least_end_ns = ready_ns.saturating_add(takes_ns);
            }
            let engines = &mut self.devices[device].engines;
            let token = engines.start(at_ns, need, id.handle(), duration_ns, sequence);
            running.engine = token.map(|token| engines.engine(token));
            running.token = token;
        }
        self.ready_times.retain(|&(_, stream)| stream != id);
        self.running.push(running);
        self.update_ends(device);
        if self.adversary.is_some() {
            self.apply(id, device, Moment::Start);
        }
    }

    /// Duration of a stream's first operation at full speed.
    fn duration_ns(&mut self, id: Id, need: Option<EngineKind>) -> u64 {
        let profile = &self.config.profile;
        let op = self.streams.get(id).and_then(|stream| stream.queue.front());
        let model_ns = match op.map(|op| &op.work) {
            Some(Work::Transfer(transfer)) => transfer.alone_ns,
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
            (Some(adversary), None) => match op.map(|op| &op.work) {
                Some(Work::Wait(..)) => 0,
                _ => adversary.lag_ns(),
            },
            (Some(adversary), _) => adversary.duration_ns(model_ns),
        }
    }

    /// Decides whether the operation fails; returns its duration.
    fn inject_failure(&mut self, id: Id, duration_ns: u64) -> u64 {
        let (failure, duration_ns) = if self.injector.hit(FaultKind::StuckCompletion) {
            (InjectedFailure::Stuck, WATCHDOG_NS)
        } else if self.injector.hit(FaultKind::LateError) {
            (InjectedFailure::LateError, duration_ns)
        } else {
            return duration_ns;
        };
        let stream = self.streams.get_mut(id).expect("an active stream");
        stream.queue.front_mut().expect("the started work").failure = Some(failure);
        duration_ns
    }

    /// Ends a running operation: its last effects, then what waited for it.
    pub(super) fn complete(&mut self, mut running: Running) {
        let Running {
            stream,
            device,
            end_ns,
            ..
        } = running;
        if let Some(token) = running.token.take() {
            let kind = self.release_engine(device, token, end_ns);
            running.left_engine = Some((kind, end_ns));
            if running.least_end_ns > end_ns {
                running.end_ns = running.least_end_ns;
                self.running.push(running);
                return;
            }
        }
        if let Some((kind, _)) = running.left_engine {
            self.follow_engine(stream, device, kind, end_ns);
        }
        if self.apply(stream, device, Moment::End) {
            self.record_span(&running);
            self.retire(stream, end_ns);
        }
    }

    /// Removes the first operation of a stream, which is done.
    fn retire(&mut self, id: Id, at_ns: u64) {
        let stream = self.streams.get_mut(id).expect("an active stream");
        let op = stream.queue.pop_front().expect("the work that is done");
        stream.running = false;
        stream.done = op.sequence;
        match &op.work {
            // A recording completes once.
            Work::Record(_, start) => drop(start.set(stream.earliest)),
            Work::Wait(_, start) => {
                if let Some(start) = start.get() {
                    stream.earliest.after(start);
                }
            }
            _ => {}
        }
        if stream.queue.is_empty() {
            let destroyed = stream.destroyed;
            self.active.retain(|&active| active != id);
            if destroyed {
                self.streams.remove(id);
            }
        }
        match op.work {
            Work::Record(event, _) => {
                if let Some(event) = self.events.get_mut(event)
                    && event.recorded.map(|point| point.sequence) == Some(op.sequence)
                {
                    event.fired_ns = Some(at_ns);
                }
            }
            Work::CallbackRunning => self.callbacks.pending -= 1,
            _ => {}
        }
    }

    /// The callback at the front of this stream has returned.
    pub(crate) fn callback_returned(&mut self, id: Id) {
        if self.adversary.is_none() {
            self.catch_up();
        }
        let stream = self.streams.get(id);
        let head = stream.and_then(|stream| stream.queue.front());
        // If the device was lost meanwhile, its work is gone.
        if head.is_some_and(|op| matches!(op.work, Work::CallbackRunning)) {
            self.rehash_behind_callback(id);
            self.retire(id, self.now_ns);
            self.dispatch(self.now_ns);
        }
    }

    /// Makes a device unusable: every call fails, and its work is discarded, so that no engine accesses
    /// memory. Pending frees happen.
    pub(crate) fn kill(&mut self, device: usize, kind: ErrorKind, detail: String) {
        let fatal = Error::new(kind, "").with_detail(detail);
        let killed = &mut self.devices[device];
        killed.fatal = Some(fatal.clone());
        killed.engines.clear();
        killed.memory.drop_freed();
        self.running.retain(|running| running.device != device);
        let callbacks = &mut self.callbacks;
        self.streams.retain(|stream| {
            if stream.device != device {
                return true;
            }
            stream.running = false;
            for op in stream.queue.drain(..) {
                match op.work {
                    Work::Callback(callback) => {
                        callbacks.pending -= 1;
                        callbacks.enqueue(callback, Err(fatal.clone()), None);
                    }
                    Work::CallbackRunning => callbacks.pending -= 1,
                    _ => {}
                }
            }
            !stream.destroyed
        });
        let has_work = |id| self.streams.get(id).is_some_and(|it| !it.queue.is_empty());
        self.active.retain(|&id| has_work(id));
        self.ready_times.retain(|&(_, id)| has_work(id));
    }

    /// Cancels work in flight that uses some memory; returns its descriptions.
    pub(crate) fn cancel(&mut self, uses: impl Fn(&Operation) -> bool) -> Vec<String> {
        let mut cancelled = Vec::new();
        for &id in &self.active {
            let queue = self.streams.get_mut(id).map(|stream| &mut stream.queue);
            for op in queue.into_iter().flatten().filter(|op| uses(op)) {
                op.cancelled = true;
                cancelled.push(op.describe());
            }
        }
        cancelled
    }

    /// Adds the operation to the timeline.
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
            stream: running.stream.handle(),
            kind,
            bytes,
            start_ns: running.start_ns,
            end_ns: running
                .left_engine
                .map_or(running.end_ns, |(_, left_ns)| left_ns),
            sequence: running.sequence,
        };
        self.trace.span(&span);
        if self.config.record_timeline {
            self.timeline.push(span);
        }
    }

    /// Updates when the running operations of a device end.
    pub(crate) fn update_ends(&mut self, device: usize) {
        let engines = &self.devices[device].engines;
        for running in &mut self.running {
            if let Some(token) = running.token
                && running.device == device
            {
                running.end_ns = engines.end_ns(token);
            }
        }
    }

    /// Releases an engine, and returns its kind.
    fn release_engine(&mut self, device: usize, token: Token, end_ns: u64) -> EngineKind {
        let engines = &mut self.devices[device].engines;
        let kind = engines.kind_of(token);
        engines.finish(token, end_ns);
        self.update_ends(device);
        kind
    }

    /// What follows in the stream starts after an operation that ends now.
    fn follow_engine(&mut self, stream: Id, device: usize, kind: EngineKind, end_ns: u64) {
        let handover_ns = self.config.profile.device.handover_ns;
        let device_state = &mut self.devices[device];
        let stream = self.streams.get_mut(stream).expect("an active stream");
        stream.earliest.after_operation(kind, end_ns, handover_ns);
        if stream.role == Role::Blocking {
            device_state.blocking_work.after(&stream.earliest);
        }
    }
}
