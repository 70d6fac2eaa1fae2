//! The kernels that add the products, with the memory they need.

use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Pod, Result, Scope, Stream};
use pinlane_report::DotKernel;

use crate::copier::Copier;

/// A kernel and its memory.
pub(super) enum Reduction {
    Tree {
        partials: DeviceBuf<f64>,
        sum: Sum<f64>,
    },
    Atomic(Sum<f32>),
}

/// The result on the device, and pinned memory to copy it to.
pub(super) struct Sum<T> {
    device: DeviceBuf<T>,
    host: PinnedBuf<T>,
}

impl<T: Pod + Default + Send> Sum<T> {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            device: device.alloc(1)?,
            host: device.pinned(1)?,
        })
    }

    fn download<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        stream: &Stream,
    ) -> Result<()> {
        scope
            .download(stream, &self.device, &mut self.host)
            .map(drop)
    }

    fn copy(&self, stream: &Stream, copier: Copier) -> Result<T> {
        let mut value = [T::default()];
        copier.download(stream, &self.device, &mut value)?;
        Ok(value[0])
    }
}

impl Reduction {
    pub(super) fn new(device: &Device, kernel: DotKernel, items: usize) -> Result<Self> {
        Ok(match kernel {
            DotKernel::Tree => Self::Tree {
                partials: device.alloc(Builtin::dot_partials(items))?,
                sum: Sum::new(device)?,
            },
            DotKernel::Atomic => Self::Atomic(Sum::new(device)?),
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
            Self::Tree { partials, sum } => kernels.dot(stream, x, y, partials, &mut sum.device),
            Self::Atomic(sum) => kernels.dot_atomic(stream, x, y, &mut sum.device),
        }
    }

    /// Copies the result to pinned memory asynchronously; [`downloaded`](Self::downloaded) returns it.
    pub(super) fn download<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        stream: &Stream,
    ) -> Result<()> {
        match self {
            Self::Tree { sum, .. } => sum.download(scope, stream),
            Self::Atomic(sum) => sum.download(scope, stream),
        }
    }

    pub(super) fn downloaded(&self) -> f64 {
        match self {
            Self::Tree { sum, .. } => sum.host[0],
            Self::Atomic(sum) => sum.host[0].into(),
        }
    }

    /// Copies the result to pageable memory.
    pub(super) fn copy(&self, stream: &Stream, copier: Copier) -> Result<f64> {
        match self {
            Self::Tree { sum, .. } => sum.copy(stream, copier),
            Self::Atomic(sum) => sum.copy(stream, copier).map(f64::from),
        }
    }
}
