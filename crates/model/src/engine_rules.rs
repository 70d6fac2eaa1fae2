//! The scheduling rules of a device's engines, shared by the simulator's clock and every schedule.
//!
//! - An operation occupies one engine ([`EngineKind`]) from its start to its end ([`Engines`]).
//! - Among operations of one priority, the one that became ready first runs first ([`QueuePosition`]).
//! - While both directions are busy, copies run more slowly; a copy that is already running slows down
//!   when the other direction starts, and speeds up when it ends.
//! - A kernel that leaves its engine before its time is over ends later; others run on the engine meanwhile.
//! - An operation that depends on one of another engine starts a little after it ([`EarliestStart`]).
//!
//! [`start_after_previous`] applies the first rule to times that events measured.

use crate::Profile;

/// A unit of the device that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Engine {
    /// Copy engine N towards the device.
    HostToDevice(u32),
    /// Copy engine N towards the host.
    DeviceToHost(u32),
    /// Kernels, fills and copies inside device memory.
    Compute,
}

/// The kind of engine that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EngineKind {
    /// A copy engine towards the device.
    HostToDevice,
    /// A copy engine towards the host.
    DeviceToHost,
    /// The compute engine.
    Compute,
}

impl EngineKind {
    /// Number of kinds.
    pub(crate) const COUNT: usize = 3;

    /// Every kind, in the order of [`index`](Self::index).
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::HostToDevice, Self::DeviceToHost, Self::Compute];

    /// Index into an array with one entry per kind.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The first engine of this kind.
    #[must_use]
    pub fn first_engine(self) -> Engine {
        match self {
            Self::HostToDevice => Engine::HostToDevice(0),
            Self::DeviceToHost => Engine::DeviceToHost(0),
            Self::Compute => Engine::Compute,
        }
    }
}

/// A place in the queue for an engine; the least goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueuePosition {
    /// Priority of the stream; lower goes first.
    pub priority: i32,
    /// When the operation could have started on a free engine.
    pub ready_ns: u64,
    /// Order of submission.
    pub sequence: u64,
}

impl QueuePosition {
    /// The position of an operation that needs no engine (event, wait). It precedes all others, so
    /// that everything ready at a given time is known before engines are assigned.
    #[must_use]
    pub fn marker(sequence: u64) -> Self {
        Self {
            priority: i32::MIN,
            ready_ns: 0,
            sequence,
        }
    }
}

/// The earliest start of the next operation of a stream, for each kind of engine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EarliestStart {
    by_kind_ns: [u64; EngineKind::COUNT],
}

impl EarliestStart {
    /// No dependencies.
    pub const ANYTIME: Self = Self {
        by_kind_ns: [0; EngineKind::COUNT],
    };

    /// Adds a dependency on an operation that ended on an engine of this kind. Starting on another
    /// kind takes `handover_ns` more.
    pub fn after_operation(&mut self, kind: EngineKind, end_ns: u64, handover_ns: u64) {
        let mut after = Self {
            by_kind_ns: [end_ns.saturating_add(handover_ns); EngineKind::COUNT],
        };
        after.by_kind_ns[kind.index()] = end_ns;
        self.after(&after);
    }

    /// Adds the dependencies of another point.
    pub fn after(&mut self, other: &Self) {
        for (mine, theirs) in self.by_kind_ns.iter_mut().zip(other.by_kind_ns) {
            *mine = theirs.max(*mine);
        }
    }

    /// The earliest start on an engine of this kind.
    #[must_use]
    pub fn ns(&self, kind: EngineKind) -> u64 {
        self.by_kind_ns[kind.index()]
    }
}

/// More copy engines of one direction than any device has.
const ENGINES_MAX: u32 = 64;

/// Speed of a copy while the other direction is busy. At full speed it is the profile's
/// `both_ways_percent`.
const SLOWED: u64 = 100;

/// The engines of one device. Callers pass times that never decrease.
#[derive(Clone, Debug)]
pub struct Engines {
    /// Engines towards the device, then towards the host, then the compute engine.
    slots: Vec<Option<Running>>,
    /// Stream and end of each engine's last operation.
    last: Vec<Option<(u64, u64)>>,
    switch_ns: u64,
    h2d_count: usize,
    /// 0 if both directions share the engines towards the device.
    d2h_count: usize,
    /// Busy engines of each kind.
    busy: [usize; EngineKind::COUNT],
    full_speed: u64,
}

/// A running operation, until it is [finished](Engines::finish).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(usize);

/// A running operation, which proceeds at a speed that may change. A nanosecond does `speed` units of
/// work. Only the end is rounded, and it is rounded up.
#[derive(Clone, Copy, Debug)]
struct Running {
    stream: u64,
    sequence: u64,
    /// Work that is left.
    left: u128,
    /// Time that `left` refers to.
    counted_ns: u64,
    speed: u64,
    not_before_ns: u64,
    end_ns: u64,
}

impl Engines {
    /// Creates the engines of a profile's device, all idle.
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

    pub(crate) fn with(
        h2d_engines: u32,
        d2h_engines: u32,
        both_ways_percent: u64,
        switch_ns: u64,
    ) -> Self {
        let h2d_count = h2d_engines.clamp(1, ENGINES_MAX) as usize;
        let d2h_count = d2h_engines.min(ENGINES_MAX) as usize;
        let count = h2d_count + d2h_count + 1;
        Self {
            slots: vec![None; count],
            last: vec![None; count],
            switch_ns,
            h2d_count,
            d2h_count,
            busy: [0; EngineKind::COUNT],
            full_speed: both_ways_percent.max(SLOWED),
        }
    }

    /// Sets the duration of copies while both directions are busy, in percent of their duration
    /// alone. All engines must be idle.
    pub(crate) fn set_both_ways_percent(&mut self, percent: u64) {
        self.full_speed = percent.max(SLOWED);
    }

    /// The kind of engine that serves an operation. It differs from what the operation needs if
    /// both directions share engines.
    #[must_use]
    pub fn serving(&self, need: EngineKind) -> EngineKind {
        match need {
            EngineKind::DeviceToHost if self.d2h_count == 0 => EngineKind::HostToDevice,
            other => other,
        }
    }

    /// Whether an engine of this kind is idle.
    #[must_use]
    pub fn is_free(&self, need: EngineKind) -> bool {
        let kind = self.serving(need);
        self.busy[kind.index()] < self.slots_of(kind).len()
    }

    /// Starts an operation that takes `alone_ns` at full speed, on the first idle engine; `None` if
    /// all are busy. Switching to the operation's stream adds to its duration. `sequence` orders
    /// operations that end at the same time.
    pub fn start(
        &mut self,
        now_ns: u64,
        need: EngineKind,
        stream: u64,
        alone_ns: u64,
        sequence: u64,
    ) -> Option<Token> {
        let kind = self.serving(need);
        let mut slots = self.slots_of(kind);
        let slot = slots.find(|&slot| self.slots[slot].is_none())?;
        let speed = self.speed(kind);
        let engine_ns = alone_ns.saturating_add(self.switching_ns(slot, stream, now_ns));
        let mut run = Running {
            stream,
            sequence,
            left: u128::from(engine_ns) * u128::from(self.full_speed),
            counted_ns: now_ns,
            speed,
            not_before_ns: 0,
            end_ns: now_ns.saturating_add(engine_ns),
        };
        if speed != self.full_speed {
            run.find_end();
        }
        self.slots[slot] = Some(run);
        self.busy[kind.index()] += 1;
        if self.busy[kind.index()] == 1 {
            self.adjust_opposite(kind, now_ns);
        }
        Some(Token(slot))
    }

    /// The operation that ends next at current speeds, and when.
    #[must_use]
    pub fn next_end(&self) -> Option<(u64, Token)> {
        let running = self.slots.iter().enumerate();
        let ends = running.filter_map(|(slot, run)| {
            let run = run.as_ref()?;
            Some((run.end_ns, run.sequence, slot))
        });
        ends.min().map(|(end_ns, _, slot)| (end_ns, Token(slot)))
    }

    /// When a running operation ends at current speeds.
    ///
    /// # Panics
    /// If it has finished.
    #[must_use]
    pub fn end_ns(&self, token: Token) -> u64 {
        self.running(token).end_ns
    }

    /// The sequence number of a running operation.
    ///
    /// # Panics
    /// If it has finished.
    #[must_use]
    pub fn sequence(&self, token: Token) -> u64 {
        self.running(token).sequence
    }

    fn running(&self, token: Token) -> &Running {
        self.slots[token.0].as_ref().expect("a running operation")
    }

    /// The engine that an operation runs on.
    #[must_use]
    pub fn engine(&self, token: Token) -> Engine {
        // There are at most 64 of each kind.
        let number = |slot: usize| u32::try_from(slot).unwrap_or(u32::MAX);
        match self.kind_of(token) {
            EngineKind::HostToDevice => Engine::HostToDevice(number(token.0)),
            EngineKind::DeviceToHost => Engine::DeviceToHost(number(token.0 - self.h2d_count)),
            EngineKind::Compute => Engine::Compute,
        }
    }

    /// The kind of engine that an operation runs on.
    #[must_use]
    pub fn kind_of(&self, token: Token) -> EngineKind {
        let mut kinds = EngineKind::ALL.into_iter();
        kinds
            .find(|&kind| self.slots_of(kind).contains(&token.0))
            .expect("an engine of some kind")
    }

    /// Ends an operation: its engine becomes idle, and the other direction may speed up.
    pub fn finish(&mut self, token: Token, now_ns: u64) {
        let Some(run) = self.slots[token.0].take() else {
            return;
        };
        self.last[token.0] = Some((run.stream, now_ns));
        let kind = self.kind_of(token);
        self.busy[kind.index()] -= 1;
        if self.busy[kind.index()] == 0 {
            self.adjust_opposite(kind, now_ns);
        }
    }

    /// Delays the end of every running operation to this time at least.
    pub fn not_before(&mut self, at_ns: u64) {
        for run in self.slots.iter_mut().flatten() {
            run.not_before_ns = at_ns;
            run.end_ns = run.end_ns.max(at_ns);
        }
    }

    /// Resets all engines to idle.
    pub fn clear(&mut self) {
        self.slots.fill(None);
        self.last.fill(None);
        self.busy = [0; EngineKind::COUNT];
    }

    /// What is left of the time that a copy engine takes to switch to this stream. The compute
    /// engine switches at no cost.
    fn switching_ns(&self, slot: usize, stream: u64, now_ns: u64) -> u64 {
        let is_copy = slot < self.h2d_count + self.d2h_count;
        match self.last[slot] {
            Some((last, end_ns)) if is_copy && last != stream => {
                self.switch_ns.saturating_sub(now_ns.saturating_sub(end_ns))
            }
            _ => 0,
        }
    }

    fn slots_of(&self, kind: EngineKind) -> std::ops::Range<usize> {
        let copies = self.h2d_count + self.d2h_count;
        match kind {
            EngineKind::HostToDevice => 0..self.h2d_count,
            EngineKind::DeviceToHost => self.h2d_count..copies,
            EngineKind::Compute => copies..copies + 1,
        }
    }

    /// Current speed of engines of this kind.
    fn speed(&self, kind: EngineKind) -> u64 {
        match opposite(kind) {
            Some(other) if self.busy[other.index()] > 0 => SLOWED,
            _ => self.full_speed,
        }
    }

    /// Adjusts the speed of the opposite direction after this one became busy or idle.
    fn adjust_opposite(&mut self, kind: EngineKind, now_ns: u64) {
        let Some(other) = opposite(kind) else { return };
        if self.busy[other.index()] == 0 || self.full_speed == SLOWED {
            return;
        }
        let speed = self.speed(other);
        for slot in self.slots_of(other) {
            if let Some(run) = &mut self.slots[slot] {
                run.set_speed(now_ns, speed);
            }
        }
    }
}

/// The other direction of the link.
fn opposite(kind: EngineKind) -> Option<EngineKind> {
    match kind {
        EngineKind::HostToDevice => Some(EngineKind::DeviceToHost),
        EngineKind::DeviceToHost => Some(EngineKind::HostToDevice),
        EngineKind::Compute => None,
    }
}

impl Running {
    fn set_speed(&mut self, now_ns: u64, speed: u64) {
        let passed_ns = now_ns.saturating_sub(self.counted_ns);
        let done = u128::from(passed_ns) * u128::from(self.speed);
        self.left = self.left.saturating_sub(done);
        self.counted_ns = self.counted_ns.max(now_ns);
        self.speed = speed;
        self.find_end();
    }

    fn find_end(&mut self) {
        // It nearly always fits, and 128-bit division is slow.
        let takes_ns = match u64::try_from(self.left) {
            Ok(left) => left.div_ceil(self.speed),
            Err(_) => u64::try_from(self.left.div_ceil(self.speed.into())).unwrap_or(u64::MAX),
        };
        let end_ns = self.counted_ns.saturating_add(takes_ns);
        self.end_ns = end_ns.max(self.not_before_ns);
    }
}

/// Corrects when work started on an engine that does one thing at a time.
///
/// A timing event before a piece of work fires when its stream gets there. If the engine is still busy with
/// other work then, the work starts only after that. `spans` are the start and the end of each piece of work of
/// one engine, in the order in which they ended.
pub fn start_after_previous<'a>(spans: impl IntoIterator<Item = (&'a mut u64, u64)>) {
    let mut free_ns = 0;
    for (start_ns, end_ns) in spans {
        *start_ns = (*start_ns).max(free_ns).min(end_ns);
        free_ns = end_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_starts_when_its_engine_is_free() {
        let mut spans = [(0, 10), (0, 20), (25, 40), (50, 45)];
        start_after_previous(spans.iter_mut().map(|(start, end)| (start, *end)));
        assert_eq!(spans, [(0, 10), (10, 20), (25, 40), (45, 45)]);
    }
}
