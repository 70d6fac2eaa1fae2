//! The device's side of a schedule: streams, events, engines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Work;
use super::queue::{NONE, Op, OpId, Recording, Stream, What, number};
use super::run::Log;
use super::span::Span;
use crate::Profile;
use crate::engine::{Behind, Engines, Need, Token, Turn};

/// Streams and what is in them.
pub(super) struct Device {
    engines: Engines,
    handover_ns: u64,
    streams: Vec<Stream>,
    ops: Vec<Op>,
    recordings: Vec<Recording>,
    /// First operations of streams that wait for nothing but an engine of their kind.
    ready: [BinaryHeap<Reverse<(Turn, u32)>>; Need::ALL.len()],
    /// Streams whose first operation may have become ready.
    unsettled: Vec<u32>,
    /// What happens next, as things stand.
    next: Option<(u64, Happening)>,
    /// Engine time of what is done, by what it needed.
    pub(super) busy_ns: [u64; Need::ALL.len()],
    /// End of the last operation so far.
    pub(super) end_ns: u64,
}

/// What happens on the device next.
#[derive(Clone, Copy)]
pub(super) enum Happening {
    /// An operation ends.
    End(Token),
    /// An operation has been handed over to a free engine.
    HandedOver,
}

impl Device {
    pub(super) fn new(profile: &Profile) -> Self {
        Self::with(Engines::new(profile), profile.device.handover_ns)
    }

    /// The lanes of the host, which are engines like those of a device: one that fills rings and
    /// one that empties them.
    pub(super) fn lanes() -> Self {
        Self::with(Engines::with(1, 1, 100, 0), 0)
    }

    /// While both directions are busy, each takes this many percent of its time alone.
    pub(super) fn slow_both_ways(&mut self, percent: u64) {
        self.engines.slow_both_ways(percent);
    }

    fn with(engines: Engines, handover_ns: u64) -> Self {
        Self {
            engines,
            handover_ns,
            streams: Vec::new(),
            ops: Vec::new(),
            recordings: Vec::new(),
            ready: Default::default(),
            unsettled: Vec::new(),
            next: None,
            busy_ns: [0; Need::ALL.len()],
            end_ns: 0,
        }
    }

    /// Forgets everything, and has so many streams, and room for so many operations.
    pub(super) fn reset(&mut self, streams: u32, operations: usize) {
        self.engines.clear();
        self.streams.clear();
        self.streams.resize(streams as usize, Stream::IDLE);
        self.ops.clear();
        self.ops.reserve(operations);
        self.recordings.clear();
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.unsettled.clear();
        self.next = None;
        self.busy_ns = [0; Need::ALL.len()];
        self.end_ns = 0;
    }

    /// Puts work at the end of a stream.
    pub(super) fn submit(
        &mut self,
        now_ns: u64,
        stream: u32,
        work: Work,
        alone_ns: u64,
        tag: u32,
    ) -> OpId {
        self.put(now_ns, stream, What::Work { work, alone_ns }, tag)
    }

    /// Puts a recording at the end of a stream, and gives its number.
    pub(super) fn record(&mut self, now_ns: u64, stream: u32) -> u32 {
        let recording = number(self.recordings.len());
        self.recordings.push(Recording {
            op: number(self.ops.len()),
            stream,
            fired: false,
            behind: Behind::default(),
            first_waiter: NONE,
        });
        self.put(now_ns, stream, What::Record(recording), 0);
        recording
    }

    /// Has a stream wait for a recording.
    pub(super) fn wait(&mut self, now_ns: u64, stream: u32, recording: u32) {
        self.put(now_ns, stream, What::Wait(recording), 0);
    }

    /// The operation and the stream of a recording.
    pub(super) fn recorded_at(&self, recording: u32) -> (OpId, u32) {
        let recording = &self.recordings[recording as usize];
        (recording.op, recording.stream)
    }

    /// The last operation of a stream, if it is not done.
    pub(super) fn last_of(&self, stream: u32) -> Option<OpId> {
        let last = self.streams[stream as usize].last;
        (last != NONE).then_some(last)
    }

    /// Whether an operation of this stream is done.
    pub(super) fn is_done(&self, op: OpId, stream: u32) -> bool {
        op < self.streams[stream as usize].done
    }

    /// What happens next, and when. At the same time operations end before hand-overs do.
    pub(super) fn next(&self) -> Option<(u64, Happening)> {
        self.next
    }

    /// Carries out what happens.
    pub(super) fn happen(&mut self, at_ns: u64, happening: Happening, log: &mut impl Log) {
        if let Happening::End(token) = happening {
            self.end(at_ns, token, log);
        }
        self.dispatch(at_ns);
    }

    fn end(&mut self, at_ns: u64, token: Token, log: &mut impl Log) {
        let id = self.engines.sequence(token);
        let engine = self.engines.engine(token);
        let kind = self.engines.kind_of(token);
        self.engines.finish(token, at_ns);
        let op = &self.ops[id as usize];
        let stream = op.stream;
        if let What::Work { work, .. } = op.what {
            let busy_ns = &mut self.busy_ns[work.need().index()];
            *busy_ns = busy_ns.saturating_add(at_ns - op.start_ns);
            log.span(Span {
                engine,
                stream,
                work,
                start_ns: op.start_ns,
                end_ns: at_ns,
                sequence: id,
                tag: op.tag,
            });
        }
        self.end_ns = self.end_ns.max(at_ns);
        let behind = &mut self.streams[stream as usize].behind;
        behind.operation(kind, at_ns, self.handover_ns);
        self.retire(stream);
        self.unsettled.push(stream);
        self.settle(at_ns);
    }

    fn put(&mut self, now_ns: u64, stream: u32, what: What, tag: u32) -> OpId {
        let id = number(self.ops.len());
        self.ops.push(Op {
            what,
            stream,
            next: NONE,
            tag,
            start_ns: 0,
        });
        let queue = &mut self.streams[stream as usize];
        let last = std::mem::replace(&mut queue.last, id);
        if last == NONE {
            queue.first = id;
            self.unsettled.push(stream);
            self.settle(now_ns);
            self.dispatch(now_ns);
        } else {
            self.ops[last as usize].next = id;
        }
        id
    }

    /// Takes the first operation out of a stream, done.
    fn retire(&mut self, stream: u32) {
        let queue = &mut self.streams[stream as usize];
        queue.done = queue.first + 1;
        queue.first = self.ops[queue.first as usize].next;
        if queue.first == NONE {
            queue.last = NONE;
        }
    }

    /// Carries out the events and waits that stand first in their streams, and puts what stands
    /// behind them into the queues of the engines.
    fn settle(&mut self, now_ns: u64) {
        while let Some(stream) = self.unsettled.pop() {
            while self.settle_first(stream, now_ns) {
                self.retire(stream);
            }
        }
    }

    /// Whether the first operation of a stream is done at once.
    fn settle_first(&mut self, stream: u32, now_ns: u64) -> bool {
        let queue = &mut self.streams[stream as usize];
        if queue.first == NONE {
            return false;
        }
        match self.ops[queue.first as usize].what {
            What::Work { work, .. } => {
                let kind = self.engines.kind(work.need());
                let turn = Turn {
                    priority: 0,
                    ready_ns: queue
                        .behind
                        .earliest_ns(kind)
                        .max(now_ns)
                        .saturating_add(work.lead_ns()),
                    sequence: queue.first.into(),
                };
                self.ready[kind.index()].push(Reverse((turn, stream)));
                false
            }
            What::Record(recording) => {
                let recording = &mut self.recordings[recording as usize];
                recording.fired = true;
                recording.behind = queue.behind;
                let mut waiter = recording.first_waiter;
                while waiter != NONE {
                    self.unsettled.push(waiter);
                    waiter = self.streams[waiter as usize].next_waiter;
                }
                true
            }
            What::Wait(recording) => {
                let recording = &mut self.recordings[recording as usize];
                if recording.fired {
                    queue.behind.point(&recording.behind);
                } else {
                    queue.next_waiter = recording.first_waiter;
                    recording.first_waiter = stream;
                }
                recording.fired
            }
        }
    }

    /// Starts whatever can start at this time, and finds out what happens next.
    fn dispatch(&mut self, now_ns: u64) {
        let mut handed_over_ns = None;
        for kind in Need::ALL {
            while let Some(&Reverse((turn, stream))) = self.ready[kind.index()].peek() {
                if !self.engines.is_free(kind) {
                    break;
                }
                if turn.ready_ns > now_ns {
                    let earlier_ns = handed_over_ns.unwrap_or(u64::MAX);
                    handed_over_ns = Some(turn.ready_ns.min(earlier_ns));
                    break;
                }
                self.ready[kind.index()].pop();
                let first = self.streams[stream as usize].first;
                let op = &mut self.ops[first as usize];
                op.start_ns = now_ns;
                if let What::Work { alone_ns, .. } = op.what {
                    let stream = stream.into();
                    self.engines
                        .start(now_ns, kind, stream, alone_ns, turn.sequence);
                }
            }
        }
        let end = self.engines.next_end();
        self.next = match (end, handed_over_ns) {
            (Some((end_ns, _)), Some(at_ns)) if at_ns < end_ns => {
                Some((at_ns, Happening::HandedOver))
            }
            (Some((end_ns, token)), _) => Some((end_ns, Happening::End(token))),
            (None, at_ns) => at_ns.map(|at_ns| (at_ns, Happening::HandedOver)),
        };
    }
}
