//! The engines of one device and what runs on them.

use super::flow::Flow;
use super::{Engine, Need};
use crate::Profile;

/// More copy engines of one direction than any device has.
const ENGINES_MAX: u32 = 64;

/// Parts of a nanosecond's work that a copy does in a nanosecond while the other direction is
/// busy. Alone it does as many as the profile's `both_ways_percent` says.
const SLOWED: u64 = 100;

/// The engines of one device. Times given to it never fall.
#[derive(Clone, Debug)]
pub struct Engines {
    /// Engines towards the device, then towards the host, then the compute engine.
    slots: Vec<Option<Run>>,
    /// The last operation of each: its stream, and when it ended.
    last: Vec<Option<(u64, u64)>>,
    switch_ns: u64,
    h2d_count: usize,
    /// 0 where both directions share the engines of the other.
    d2h_count: usize,
    /// Engines of each kind, and how many of them are busy.
    counts: [usize; Need::ALL.len()],
    busy: [usize; Need::ALL.len()],
    full_speed: u64,
}

/// A running operation: its engine, until it is [finished](Engines::finish).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(usize);

#[derive(Clone, Copy, Debug)]
struct Run {
    stream: u64,
    sequence: u64,
    flow: Flow,
}

impl Engines {
    /// The engines of a profile's device, all free.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let facts = &profile.device;
        Self::with(
            facts.h2d_engines,
            facts.d2h_engines,
            profile.both_ways_percent,
            facts.switch_ns,
        )
    }

    /// So many engines of each direction, slowed as far, and as slow to turn to another stream.
    pub(crate) fn with(
        h2d_engines: u32,
        d2h_engines: u32,
        both_ways_percent: u64,
        switch_ns: u64,
    ) -> Self {
        let count = |engines: u32| engines.min(ENGINES_MAX) as usize;
        let h2d_count = count(h2d_engines).max(1);
        let d2h_count = count(d2h_engines);
        Self {
            slots: vec![None; h2d_count + d2h_count + 1],
            last: vec![None; h2d_count + d2h_count + 1],
            switch_ns,
            h2d_count,
            d2h_count,
            counts: [h2d_count, d2h_count, 1],
            busy: [0; Need::ALL.len()],
            full_speed: both_ways_percent.max(SLOWED),
        }
    }

    /// While both directions are busy, each takes this many percent of its time alone. For
    /// engines that are all free.
    pub(crate) fn slow_both_ways(&mut self, percent: u64) {
        self.full_speed = percent.max(SLOWED);
    }

    /// The kind of engine that serves a need: where directions share engines, both need the same.
    #[must_use]
    pub fn kind(&self, need: Need) -> Need {
        match need {
            Need::DeviceToHost if self.d2h_count == 0 => Need::HostToDevice,
            other => other,
        }
    }

    /// Whether an engine for this need is free.
    #[must_use]
    pub fn is_free(&self, need: Need) -> bool {
        let kind = self.kind(need).index();
        self.busy[kind] < self.counts[kind]
    }

    /// Starts an operation of a stream that takes `alone_ns` where nothing slows it, on the first
    /// free engine; it keeps the engine longer by what turning to the stream takes. None if no
    /// engine for it is free. `sequence` orders what ends at the same time.
    pub fn start(
        &mut self,
        now_ns: u64,
        need: Need,
        stream: u64,
        alone_ns: u64,
        sequence: u64,
    ) -> Option<Token> {
        let kind = self.kind(need);
        let slot = self
            .slots_of(kind)
            .find(|&slot| self.slots[slot].is_none())?;
        let speed = self.speed(kind);
        let engine_ns = alone_ns.saturating_add(self.turning_ns(slot, stream, now_ns));
        let flow = Flow::new(now_ns, engine_ns, self.full_speed, speed);
        self.slots[slot] = Some(Run {
            stream,
            sequence,
            flow,
        });
        self.busy[kind.index()] += 1;
        if self.busy[kind.index()] == 1 {
            self.retime_opposite(kind, now_ns);
        }
        Some(Token(slot))
    }

    /// The operation that ends next, as things stand, and when.
    #[must_use]
    pub fn next_end(&self) -> Option<(u64, Token)> {
        let mut next: Option<((u64, u64), usize)> = None;
        for (slot, run) in self.slots.iter().enumerate() {
            let Some(run) = run else { continue };
            let key = (run.flow.end_ns(), run.sequence);
            if next.is_none_or(|(least, _)| key < least) {
                next = Some((key, slot));
            }
        }
        next.map(|((end_ns, _), slot)| (end_ns, Token(slot)))
    }

    /// When a running operation ends, as things stand.
    ///
    /// # Panics
    /// If it is finished.
    #[must_use]
    pub fn end_ns(&self, token: Token) -> u64 {
        let run = self.slots[token.0].as_ref();
        run.expect("an operation that runs").flow.end_ns()
    }

    /// The sequence number that it was started with.
    ///
    /// # Panics
    /// If it is finished.
    #[must_use]
    pub fn sequence(&self, token: Token) -> u64 {
        let run = self.slots[token.0].as_ref();
        run.expect("an operation that runs").sequence
    }

    /// The engine that it runs on.
    #[must_use]
    pub fn engine(&self, token: Token) -> Engine {
        // There are at most 64 of each kind.
        let number = |slot: usize| u32::try_from(slot).unwrap_or(u32::MAX);
        match self.kind_of(token) {
            Need::HostToDevice => Engine::HostToDevice(number(token.0)),
            Need::DeviceToHost => Engine::DeviceToHost(number(token.0 - self.h2d_count)),
            Need::Compute => Engine::Compute,
        }
    }

    /// The kind of engine that it runs on.
    #[must_use]
    pub fn kind_of(&self, token: Token) -> Need {
        if token.0 < self.h2d_count {
            Need::HostToDevice
        } else if token.0 < self.h2d_count + self.d2h_count {
            Need::DeviceToHost
        } else {
            Need::Compute
        }
    }

    /// Ends an operation: its engine is free, and the other direction may speed up.
    pub fn finish(&mut self, token: Token, now_ns: u64) {
        let Some(run) = self.slots[token.0].take() else {
            return;
        };
        self.last[token.0] = Some((run.stream, now_ns));
        let kind = self.kind_of(token);
        self.busy[kind.index()] -= 1;
        if self.busy[kind.index()] == 0 {
            self.retime_opposite(kind, now_ns);
        }
    }

    /// Nothing that runs ends before this time.
    pub fn not_before(&mut self, at_ns: u64) {
        for run in self.slots.iter_mut().flatten() {
            run.flow.not_before(at_ns);
        }
    }

    /// Forgets all that runs.
    pub fn clear(&mut self) {
        self.slots.fill(None);
        self.last.fill(None);
        self.busy = [0; Need::ALL.len()];
    }

    /// What is left of the time in which an engine turns to this stream. Kernels of other streams
    /// wait for nothing.
    fn turning_ns(&self, slot: usize, stream: u64, now_ns: u64) -> u64 {
        let is_copy = slot < self.h2d_count + self.d2h_count;
        match self.last[slot] {
            Some((last, end_ns)) if is_copy && last != stream => {
                self.switch_ns.saturating_sub(now_ns.saturating_sub(end_ns))
            }
            _ => 0,
        }
    }

    fn slots_of(&self, kind: Need) -> std::ops::Range<usize> {
        let copies = self.h2d_count + self.d2h_count;
        match kind {
            Need::HostToDevice => 0..self.h2d_count,
            Need::DeviceToHost => self.h2d_count..copies,
            Need::Compute => copies..copies + 1,
        }
    }

    /// How fast an engine of this kind works now.
    fn speed(&self, kind: Need) -> u64 {
        match opposite(kind) {
            Some(other) if self.busy[other.index()] > 0 => SLOWED,
            _ => self.full_speed,
        }
    }

    /// A direction has begun or ended to be busy: the copies of the other one change their speed.
    fn retime_opposite(&mut self, kind: Need, now_ns: u64) {
        let Some(other) = opposite(kind) else { return };
        if self.busy[other.index()] == 0 || self.full_speed == SLOWED {
            return;
        }
        let speed = self.speed(other);
        for slot in self.slots_of(other) {
            if let Some(run) = &mut self.slots[slot] {
                run.flow.set_speed(now_ns, speed);
            }
        }
    }
}

/// The direction that a direction shares the link with.
fn opposite(kind: Need) -> Option<Need> {
    match kind {
        Need::HostToDevice => Some(Need::DeviceToHost),
        Need::DeviceToHost => Some(Need::HostToDevice),
        Need::Compute => None,
    }
}
