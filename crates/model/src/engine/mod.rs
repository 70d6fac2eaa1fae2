//! The scheduling rules of a device's engines, shared by the simulator's clock and every schedule.
//!
//! - An operation occupies one engine ([`EngineKind`]) from its start to its end ([`Engines`]).
//! - Among operations of one priority, the one that became ready first runs first ([`QueuePosition`]).
//! - While both directions are busy, copies run more slowly; a copy that is already running slows down
//!   when the other direction starts, and speeds up when it ends.
//! - An operation that depends on one of another engine starts a little after it ([`EarliestStart`]).

mod engines;

pub use engines::{Engines, Token};

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
