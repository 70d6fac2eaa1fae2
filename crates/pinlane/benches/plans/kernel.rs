//! Three kinds of kernels, with the same result.

use pinlane::{Builtin, DeviceSliceMut, Result, Stream};

/// What limits a kernel.
#[derive(Clone, Copy)]
pub enum KernelKind {
    Compute,
    Memory,
    Latency,
}

impl KernelKind {
    pub const ALL: [Self; 3] = [Self::Compute, Self::Memory, Self::Latency];

    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Latency => "latency",
        }
    }

    pub fn launch(
        self,
        kernels: &Builtin,
        stream: &Stream,
        rounds: u32,
        data: DeviceSliceMut<'_, u32>,
    ) -> Result<()> {
        match self {
            Self::Compute => kernels.churn(stream, rounds, data),
            Self::Memory => kernels.sweep(stream, rounds, data),
            Self::Latency => kernels.round_trips(stream, rounds, data),
        }
    }
}
