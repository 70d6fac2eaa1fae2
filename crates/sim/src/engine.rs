//! The engines of one device.

use pinlane_model::DeviceFacts;

use crate::op::Work;
use crate::timeline::{Engine, SpanKind};

/// Which engines are busy. Bit N of a word is engine N.
pub(crate) struct Engines {
    h2d_count: u32,
    /// 0 where both directions share the engines of the other.
    d2h_count: u32,
    h2d_busy: u64,
    d2h_busy: u64,
    compute_busy: bool,
}

/// The kind of engine that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    HostToDevice,
    DeviceToHost,
    Compute,
    Nothing,
}

impl Need {
    pub(crate) fn of(work: &Work) -> Self {
        match work {
            Work::Transfer(transfer) => match transfer.kind {
                SpanKind::HostToDevice => Self::HostToDevice,
                SpanKind::DeviceToHost => Self::DeviceToHost,
                _ => Self::Compute,
            },
            Work::Memset { .. } | Work::Kernel(_) => Self::Compute,
            _ => Self::Nothing,
        }
    }
}

impl Engines {
    pub(crate) fn new(facts: &DeviceFacts) -> Self {
        Self {
            h2d_count: facts.h2d_engines.min(64),
            d2h_count: facts.d2h_engines.min(64),
            h2d_busy: 0,
            d2h_busy: 0,
            compute_busy: false,
        }
    }

    /// The first engine of the kind, busy or not.
    pub(crate) fn any(need: Need) -> Option<Engine> {
        match need {
            Need::HostToDevice => Some(Engine::HostToDevice(0)),
            Need::DeviceToHost => Some(Engine::DeviceToHost(0)),
            Need::Compute => Some(Engine::Compute),
            Need::Nothing => None,
        }
    }

    /// Whether an engine of the kind is free.
    pub(crate) fn is_free(&self, need: Need) -> bool {
        match self.resolve(need) {
            Need::HostToDevice => self.h2d_busy.trailing_ones() < self.h2d_count,
            Need::DeviceToHost => self.d2h_busy.trailing_ones() < self.d2h_count,
            Need::Compute => !self.compute_busy,
            Need::Nothing => true,
        }
    }

    /// Takes a free engine of the kind.
    pub(crate) fn claim(&mut self, need: Need) -> Option<Engine> {
        match self.resolve(need) {
            Need::HostToDevice => {
                let index = self.h2d_busy.trailing_ones();
                self.h2d_busy |= 1 << index;
                Some(Engine::HostToDevice(index))
            }
            Need::DeviceToHost => {
                let index = self.d2h_busy.trailing_ones();
                self.d2h_busy |= 1 << index;
                Some(Engine::DeviceToHost(index))
            }
            Need::Compute => {
                self.compute_busy = true;
                Some(Engine::Compute)
            }
            Need::Nothing => None,
        }
    }

    /// Gives an engine back.
    pub(crate) fn release(&mut self, engine: Engine) {
        match engine {
            Engine::HostToDevice(index) => self.h2d_busy &= !(1 << index),
            Engine::DeviceToHost(index) => self.d2h_busy &= !(1 << index),
            Engine::Compute => self.compute_busy = false,
        }
    }

    /// Gives all engines back.
    pub(crate) fn clear(&mut self) {
        self.h2d_busy = 0;
        self.d2h_busy = 0;
        self.compute_busy = false;
    }

    /// Whether the direction opposite to this one is busy.
    pub(crate) fn opposite_busy(&self, need: Need) -> bool {
        match need {
            Need::HostToDevice => self.d2h_busy != 0,
            Need::DeviceToHost => self.h2d_busy != 0 && self.d2h_count > 0,
            Need::Compute | Need::Nothing => false,
        }
    }

    /// Where directions share engines, both need the same kind.
    fn resolve(&self, need: Need) -> Need {
        match need {
            Need::DeviceToHost if self.d2h_count == 0 => Need::HostToDevice,
            other => other,
        }
    }
}
