//! The kernels, and where their result goes.

use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Result, Scope, Stream};
use pinlane_report::DotKernel;

/// A way to add products, with the memory that it needs.
pub(super) enum Work {
    Tree {
        partials: DeviceBuf<f64>,
        sum: DeviceBuf<f64>,
        back: PinnedBuf<f64>,
    },
    Atomic {
        sum: DeviceBuf<f32>,
        back: PinnedBuf<f32>,
    },
}

/// How a result comes back.
#[derive(Clone, Copy)]
pub(super) enum Fetch {
    Driver,
    Express,
}

impl Work {
    pub(super) fn new(device: &Device, kernel: DotKernel, items: usize) -> Result<Self> {
        Ok(match kernel {
            DotKernel::Tree => Self::Tree {
                partials: device.alloc(Builtin::dot_partials(items))?,
                sum: device.alloc(1)?,
                back: device.pinned(1)?,
            },
            DotKernel::Atomic => Self::Atomic {
                sum: device.alloc(1)?,
                back: device.pinned(1)?,
            },
        })
    }

    pub(super) fn launch(
        &mut self,
        kernels: &Builtin,
        stream: &Stream,
        x: &DeviceBuf<f32>,
        y: &DeviceBuf<f32>,
    ) -> Result<()> {
        match self {
            Self::Tree { partials, sum, .. } => kernels.dot(stream, x, y, partials, sum),
            Self::Atomic { sum, .. } => kernels.dot_atomic(stream, x, y, sum),
        }
    }

    /// The result into pinned memory, asynchronously. [`landed`](Self::landed) tells it then.
    pub(super) fn download<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        stream: &Stream,
    ) -> Result<()> {
        match self {
            Self::Tree { sum, back, .. } => scope.download(stream, &*sum, back).map(drop),
            Self::Atomic { sum, back } => scope.download(stream, &*sum, back).map(drop),
        }
    }

    /// What lies in pinned memory.
    pub(super) fn landed(&self) -> f64 {
        match self {
            Self::Tree { back, .. } => back[0],
            Self::Atomic { back, .. } => back[0].into(),
        }
    }

    /// The result through ordinary memory.
    pub(super) fn fetch(&self, stream: &Stream, how: Fetch) -> Result<f64> {
        match self {
            Self::Tree { sum, .. } => {
                let mut back = [0.0];
                match how {
                    Fetch::Driver => stream.driver_copy_to_host(sum, &mut back)?,
                    Fetch::Express => stream.copy_to_host(sum, &mut back)?,
                }
                Ok(back[0])
            }
            Self::Atomic { sum, .. } => {
                let mut back = [0.0];
                match how {
                    Fetch::Driver => stream.driver_copy_to_host(sum, &mut back)?,
                    Fetch::Express => stream.copy_to_host(sum, &mut back)?,
                }
                Ok(back[0].into())
            }
        }
    }
}
