//! The device: streams, events, engines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::scheduler::SpanSink;
use super::{Span, Work};
use crate::Profile;
use crate::engine_rules::{EarliestStart, EngineKind, Engines, QueuePosition, Token};

/// Streams and their queues.
pub(super) struct Device {
    pub(super) engines: Engines,
    handover_ns: u64,
    streams: Vec<Stream>,
    operations: Vec<Operation>,
    recordings: Vec<Recording>,
    /// Streams whose first operation only needs an engine, by kind.
    ready: [BinaryHeap<Reverse<(QueuePosition, u32)>>; EngineKind::COUNT],
    /// Operations that have left their engine but have not ended: when they do, their number and stream.
    tails: BinaryHeap<Reverse<(u64, OpId, u32)>>,
    /// Streams whose first operation may have become ready.
    unsettled: Vec<u32>,
    /// What happens next, and when. Ends precede other events at the same time.
    pub(super) next: Option<(u64, DeviceEvent)>,
    /// End of the last completed operation.
    pub(super) end_ns: u64,
}

/// What happens next on the device.
#[derive(Clone, Copy)]
pub(super) enum DeviceEvent {
    /// An operation leaves its engine.
    End(Token),
    /// The first of the operations that have left their engine ends.
    TailEnd,
    /// An operation becomes ready for an idle engine.
    Ready,
}

impl Device {
    pub(super) fn new(profile: &Profile) -> Self {
        Self::with(Engines::new(profile), profile.device.handover_ns)
    }

    /// The express lane, which behaves like a device with one copy engine per direction.
    pub(super) fn express() -> Self {
        Self::with(Engines::with(1, 1, 100, 0), 0)
    }

    fn with(engines: Engines, handover_ns: u64) -> Self {
        Self {
            engines,
            handover_ns,
            streams: Vec::new(),
            operations: Vec::new(),
            recordings: Vec::new(),
            ready: Default::default(),
            tails: BinaryHeap::new(),
            unsettled: Vec::new(),
            next: None,
            end_ns: 0,
        }
    }

    /// Starts over with `streams` empty streams, reusing memory.
    pub(super) fn reset(&mut self, streams: u32, operations: usize) {
        self.engines.clear();
        self.streams.clear();
        self.streams.resize(streams as usize, Stream::IDLE);
        self.operations.clear();
        self.operations.reserve(operations);
        self.recordings.clear();
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.tails.clear();
        self.unsettled.clear();
        self.next = None;
        self.end_ns = 0;
    }

    /// Submits work to a stream.
    pub(super) fn submit(
        &mut self,
        now_ns: u64,
        stream: u32,
        work: Work,
        alone_ns: u64,
        tag: u32,
    ) -> OpId {
        self.push(now_ns, stream, OperationKind::Work { work, alone_ns }, tag)
    }

    /// Records an event on a stream; returns the number of the recording.
    pub(super) fn record(&mut self, now_ns: u64, stream: u32) -> u32 {
        let recording = number(self.recordings.len());
        self.recordings.push(Recording {
            operation: number(self.operations.len()),
            stream,
            fired: false,
            earliest: EarliestStart::ANYTIME,
            first_waiter: NONE,
        });
        self.push(now_ns, stream, OperationKind::Record(recording), 0);
        recording
    }

    /// Makes a stream wait for a recording.
    pub(super) fn wait(&mut self, now_ns: u64, stream: u32, recording: u32) {
        self.push(now_ns, stream, OperationKind::Wait(recording), 0);
    }

    /// The operation and the stream of a recording.
    pub(super) fn recorded_at(&self, recording: u32) -> (OpId, u32) {
        let recording = &self.recordings[recording as usize];
        (recording.operation, recording.stream)
    }

    /// The last operation of a stream, unless it is done.
    pub(super) fn last_of(&self, stream: u32) -> Option<OpId> {
        let last = self.streams[stream as usize].last;
        (last != NONE).then_some(last)
    }

    /// Whether an operation of this stream is done.
    pub(super) fn is_done(&self, op: OpId, stream: u32) -> bool {
        op < self.streams[stream as usize].done
    }

    /// Carries out an event.
    pub(super) fn handle(&mut self, at_ns: u64, event: DeviceEvent, sink: &mut impl SpanSink) {
        match event {
            DeviceEvent::End(token) => self.leave_engine(at_ns, token, sink),
            DeviceEvent::TailEnd => {
                if let Some(Reverse((_, _, stream))) = self.tails.pop() {
                    self.end(at_ns, stream, EngineKind::Compute);
                }
            }
            DeviceEvent::Ready => {}
        }
        self.dispatch(at_ns);
    }

    fn leave_engine(&mut self, at_ns: u64, token: Token, sink: &mut impl SpanSink) {
        let id = self.engines.sequence(token);
        let engine = self.engines.engine(token);
        let kind = self.engines.kind_of(token);
        self.engines.finish(token, at_ns);
        let op = &self.operations[id as usize];
        let (stream, least_end_ns) = (op.stream, op.least_end_ns);
        if let OperationKind::Work { work, .. } = op.kind {
            sink.span(Span {
                engine,
                stream,
                work,
                start_ns: op.start_ns,
                end_ns: at_ns,
                sequence: id,
                tag: op.tag,
            });
        }
        if least_end_ns > at_ns {
            // There are no more operations than fit.
            self.tails.push(Reverse((least_end_ns, id as OpId, stream)));
            return;
        }
        self.end(at_ns, stream, kind);
    }

    /// Ends the first operation of a stream, which was on an engine of this kind.
    fn end(&mut self, at_ns: u64, stream: u32, kind: EngineKind) {
        self.end_ns = self.end_ns.max(at_ns);
        let earliest = &mut self.streams[stream as usize].earliest;
        earliest.after_operation(kind, at_ns, self.handover_ns);
        self.retire(stream);
        self.unsettled.push(stream);
        self.settle(at_ns);
    }

    fn push(&mut self, now_ns: u64, stream: u32, kind: OperationKind, tag: u32) -> OpId {
        let id = number(self.operations.len());
        self.operations.push(Operation {
            kind,
            stream,
            next: NONE,
            tag,
            start_ns: 0,
            least_end_ns: 0,
        });
        let queue = &mut self.streams[stream as usize];
        let last = std::mem::replace(&mut queue.last, id);
        if last == NONE {
            queue.first = id;
            self.unsettled.push(stream);
            self.settle(now_ns);
            self.dispatch(now_ns);
        } else {
            self.operations[last as usize].next = id;
        }
        id
    }

    /// Removes the first operation of a stream, which is done.
    fn retire(&mut self, stream: u32) {
        let queue = &mut self.streams[stream as usize];
        queue.done = queue.first + 1;
        queue.first = self.operations[queue.first as usize].next;
        if queue.first == NONE {
            queue.last = NONE;
        }
    }

    /// Carries out events and waits at the front of their streams, and queues the work behind them
    /// for its engines.
    fn settle(&mut self, now_ns: u64) {
        while let Some(stream) = self.unsettled.pop() {
            while self.settle_first(stream, now_ns) {
                self.retire(stream);
            }
        }
    }

    /// Whether the first operation of a stream completes at once.
    fn settle_first(&mut self, stream: u32, now_ns: u64) -> bool {
        let queue = &mut self.streams[stream as usize];
        if queue.first == NONE {
            return false;
        }
        match self.operations[queue.first as usize].kind {
            OperationKind::Work { work, alone_ns } => {
                let kind = self.engines.serving(work.engine_kind());
                let start_ns = queue.earliest.ns(kind).max(now_ns);
                let position = QueuePosition {
                    priority: 0,
                    ready_ns: start_ns,
                    sequence: queue.first.into(),
                };
                self.ready[kind.index()].push(Reverse((position, stream)));
                if work.tail_ns() > 0 {
                    let takes_ns = alone_ns.saturating_add(work.tail_ns());
                    let op = &mut self.operations[queue.first as usize];
                    op.least_end_ns = start_ns.saturating_add(takes_ns);
                }
                false
            }
            OperationKind::Record(recording) => {
                let recording = &mut self.recordings[recording as usize];
                recording.fired = true;
                recording.earliest = queue.earliest;
                let mut waiter = recording.first_waiter;
                while waiter != NONE {
                    self.unsettled.push(waiter);
                    waiter = self.streams[waiter as usize].next_waiter;
                }
                true
            }
            OperationKind::Wait(recording) => {
                let recording = &mut self.recordings[recording as usize];
                if recording.fired {
                    queue.earliest.after(&recording.earliest);
                } else {
                    queue.next_waiter = recording.first_waiter;
                    recording.first_waiter = stream;
                }
                recording.fired
            }
        }
    }

    /// Starts everything that can start now, and determines what happens next.
    fn dispatch(&mut self, now_ns: u64) {
        let mut ready_ns: Option<u64> = None;
        for kind in EngineKind::ALL {
            while let Some(&Reverse((position, stream))) = self.ready[kind.index()].peek() {
                if !self.engines.is_free(kind) {
                    break;
                }
                if position.ready_ns > now_ns {
                    let other_ns = ready_ns.unwrap_or(u64::MAX);
                    ready_ns = Some(position.ready_ns.min(other_ns));
                    break;
                }
                self.ready[kind.index()].pop();
                let first = self.streams[stream as usize].first;
                let op = &mut self.operations[first as usize];
                op.start_ns = now_ns;
                if let OperationKind::Work { alone_ns, .. } = op.kind {
                    let (stream, sequence) = (stream.into(), position.sequence);
                    self.engines.start(now_ns, kind, stream, alone_ns, sequence);
                }
            }
        }
        let ready = ready_ns.map(|at_ns| (at_ns, DeviceEvent::Ready));
        // Ends of the same time are in the order of submission.
        let end = self.engines.next_end().map(|(at_ns, token)| {
            let sequence = self.engines.sequence(token);
            ((at_ns, sequence), DeviceEvent::End(token))
        });
        let tail_end = self.tails.peek();
        let tail_end =
            tail_end.map(|&Reverse((at_ns, id, _))| ((at_ns, id.into()), DeviceEvent::TailEnd));
        let ends = end.into_iter().chain(tail_end);
        let end = ends
            .min_by_key(|end| end.0)
            .map(|((at_ns, _), event)| (at_ns, event));
        self.next = end.into_iter().chain(ready).min_by_key(|next| next.0);
    }
}

/// No operation, no stream.
const NONE: u32 = u32::MAX;

/// Number of an operation, in order of submission.
pub(super) type OpId = u32;

/// A queue of operations, linked by their numbers.
#[derive(Clone, Copy)]
struct Stream {
    first: u32,
    last: u32,
    /// Operations of this stream below this number are done.
    done: OpId,
    earliest: EarliestStart,
    /// Next stream that waits for the same recording.
    next_waiter: u32,
}

impl Stream {
    /// An empty stream.
    const IDLE: Self = Self {
        first: NONE,
        last: NONE,
        done: 0,
        earliest: EarliestStart::ANYTIME,
        next_waiter: NONE,
    };
}

/// An operation of a stream.
struct Operation {
    kind: OperationKind,
    stream: u32,
    next: u32,
    tag: u32,
    start_ns: u64,
    /// It does not end before, even if it has left its engine.
    least_end_ns: u64,
}

/// What an operation does.
#[derive(Clone, Copy)]
enum OperationKind {
    Work { work: Work, alone_ns: u64 },
    Record(u32),
    Wait(u32),
}

/// One recording of an event.
struct Recording {
    operation: OpId,
    stream: u32,
    fired: bool,
    earliest: EarliestStart,
    first_waiter: u32,
}

fn number(count: usize) -> u32 {
    let number = u32::try_from(count).unwrap_or(NONE);
    assert!(number != NONE, "longer programs are refused");
    number
}
