//! The rules of a device's engines. The simulator's clock and every schedule use these, and there
//! are no others.
//!
//! - An operation needs one engine ([`Need`]), and has it from its start to its end ([`Engines`]).
//! - Whoever became ready first goes first ([`Turn`]).
//! - A copy has work to do: the time that it takes alone. While the other direction is busy it
//!   proceeds more slowly, from the moment on at which that one begins until it ends.
//! - From one engine to another the hand-over takes time ([`Behind`]).

mod behind;
mod engines;
mod flow;
mod turn;

pub use behind::Behind;
pub use engines::{Engines, Token};
pub use turn::Turn;

/// A unit of the device that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Engine {
    /// Copy engine number N towards the device.
    HostToDevice(u32),
    /// Copy engine number N towards the host.
    DeviceToHost(u32),
    /// Kernels, fills and copies inside device memory.
    Compute,
}

/// The kind of engine that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Need {
    /// A copy engine towards the device.
    HostToDevice,
    /// A copy engine towards the host.
    DeviceToHost,
    /// The compute engine.
    Compute,
}

impl Need {
    /// Every kind, in the order of [`index`](Self::index).
    pub(crate) const ALL: [Self; 3] = [Self::HostToDevice, Self::DeviceToHost, Self::Compute];

    /// Place in an array with one entry a kind.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The first engine of the kind, whatever it does.
    #[must_use]
    pub fn first_engine(self) -> Engine {
        match self {
            Self::HostToDevice => Engine::HostToDevice(0),
            Self::DeviceToHost => Engine::DeviceToHost(0),
            Self::Compute => Engine::Compute,
        }
    }
}
