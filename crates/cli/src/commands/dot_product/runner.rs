//! The three variants, timed by events.

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Pod, Result, Scope, Stream};
use pinlane_report::{DotKernel, DotTimes};

use crate::driver_or_express_copy::Copier;

#[derive(Clone, Copy)]
pub(super) struct DotRun {
    pub(super) times: DotTimes,
    pub(super) value: f64,
}

/// Where the vectors are, and who copies them.
pub(super) type Way = fn(&mut DotRunner<'_>) -> Result<f64>;

pub(super) struct DotRunner<'a> {
    device: &'a Device,
    kernels: Builtin,
    stream: Stream,
    events: StageEvents,
    device_x: DeviceBuf<f32>,
    device_y: DeviceBuf<f32>,
    reduction: Reduction,
    pinned: [PinnedBuf<f32>; 2],
    pageable: [Vec<f32>; 2],
}

impl<'a> DotRunner<'a> {
    /// Fills `pinned` from `pageable`, which has the same length.
    pub(super) fn new(
        device: &'a Device,
        kernel: DotKernel,
        mut pinned: [PinnedBuf<f32>; 2],
        pageable: [Vec<f32>; 2],
    ) -> anyhow::Result<Self> {
        for (target, source) in pinned.iter_mut().zip(&pageable) {
            target.copy_from_slice(source);
        }
        let items = pageable[0].len();
        let too_large = "not enough device memory; use a smaller -n";
        Ok(Self {
            device,
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            events: StageEvents::new(device)?,
            device_x: device.alloc(items).context(too_large)?,
            device_y: device.alloc(items).context(too_large)?,
            reduction: Reduction::new(device, kernel, items).context(too_large)?,
            pinned,
            pageable,
        })
    }

    /// Runs once to warm up, then `repeat` times.
    pub(super) fn runs(&mut self, repeat: u32, run: Way) -> anyhow::Result<Vec<DotRun>> {
        let mut run_once = || -> anyhow::Result<DotRun> {
            let value = run(self)?;
            let times = self.events.times()?;
            Ok(DotRun { times, value })
        };
        run_once()?;
        (0..repeat).map(|_| run_once()).collect()
    }

    /// Runs another kernel on the vectors that are on the device. Its times contain no copies.
    pub(super) fn kernel_alone(
        &mut self,
        kernel: DotKernel,
        repeat: u32,
    ) -> anyhow::Result<Vec<DotRun>> {
        let mut reduction = Reduction::new(self.device, kernel, self.pageable[0].len())?;
        let mut run_once = || -> anyhow::Result<DotRun> {
            let Self { stream, events, .. } = &*self;
            events.record(stream, 0)?;
            events.record(stream, 1)?;
            reduction.launch(&self.kernels, stream, &self.device_x, &self.device_y)?;
            events.record(stream, 2)?;
            let value = reduction.copy(stream, Copier::Driver)?;
            events.record(stream, 3)?;
            let times = events.times()?;
            Ok(DotRun { times, value })
        };
        run_once()?;
        (0..repeat).map(|_| run_once()).collect()
    }

    /// From pinned memory: submits everything at once and waits at the end.
    pub(super) fn pinned(&mut self) -> Result<f64> {
        let Self {
            kernels,
            stream,
            events,
            device_x,
            device_y,
            reduction,
            pinned: [x, y],
            ..
        } = self;
        let borrowed = &mut *reduction;
        self.device.scope(|scope| {
            events.record(stream, 0)?;
            scope.upload(stream, &*x, &mut *device_x)?;
            scope.upload(stream, &*y, &mut *device_y)?;
            events.record(stream, 1)?;
            borrowed.launch(kernels, stream, device_x, device_y)?;
            events.record(stream, 2)?;
            borrowed.download(scope, stream)?;
            events.record(stream, 3)
        })?;
        Ok(reduction.downloaded())
    }

    /// From pageable memory.
    pub(super) fn pageable(&mut self, copier: Copier) -> Result<f64> {
        let (stream, [x, y]) = (&self.stream, &self.pageable);
        let (events, kernels) = (&self.events, &self.kernels);
        events.record(stream, 0)?;
        copier.upload(stream, x, &mut self.device_x)?;
        copier.upload(stream, y, &mut self.device_y)?;
        events.record(stream, 1)?;
        self.reduction
            .launch(kernels, stream, &self.device_x, &self.device_y)?;
        events.record(stream, 2)?;
        let value = self.reduction.copy(stream, copier)?;
        events.record(stream, 3)?;
        Ok(value)
    }
}

/// Events before the copies, before the kernels, before the download of the result, and after it.
struct StageEvents([Event; 4]);

impl StageEvents {
    fn new(device: &Device) -> Result<Self> {
        let event = || device.event_with_timing();
        Ok(Self([event()?, event()?, event()?, event()?]))
    }

    fn record(&self, stream: &Stream, index: usize) -> Result<()> {
        stream.record(&self.0[index])
    }

    /// Waits for the last event. Returns the times between them.
    fn times(&self) -> anyhow::Result<DotTimes> {
        let [start, copied, added, end] = &self.0;
        end.synchronize()?;
        let between = |from: &Event, to: &Event| {
            u64::try_from(from.elapsed_ns(to)?).context("the device's clock ran backwards")
        };
        let (copy_ns, kernel_ns) = (between(start, copied)?, between(copied, added)?);
        Ok(DotTimes::new(copy_ns, kernel_ns, between(added, end)?))
    }
}

enum Reduction {
    Tree {
        partials: DeviceBuf<f64>,
        sum: Sum<f64>,
    },
    Atomic(Sum<f32>),
}

/// The result on the device, and pinned memory to copy it to.
struct Sum<T> {
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
        scope.download(stream, &self.device, &mut self.host)?;
        Ok(())
    }

    fn copy(&self, stream: &Stream, copier: Copier) -> Result<T> {
        let mut value = [T::default()];
        copier.download(stream, &self.device, &mut value)?;
        Ok(value[0])
    }
}

impl Reduction {
    fn new(device: &Device, kernel: DotKernel, items: usize) -> Result<Self> {
        Ok(match kernel {
            DotKernel::Tree => Self::Tree {
                partials: device.alloc(Builtin::dot_partials(items))?,
                sum: Sum::new(device)?,
            },
            DotKernel::Atomic => Self::Atomic(Sum::new(device)?),
        })
    }

    fn launch(
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
    fn download<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        stream: &Stream,
    ) -> Result<()> {
        match self {
            Self::Tree { sum, .. } => sum.download(scope, stream),
            Self::Atomic(sum) => sum.download(scope, stream),
        }
    }

    fn downloaded(&self) -> f64 {
        match self {
            Self::Tree { sum, .. } => sum.host[0],
            Self::Atomic(sum) => sum.host[0].into(),
        }
    }

    fn copy(&self, stream: &Stream, copier: Copier) -> Result<f64> {
        match self {
            Self::Tree { sum, .. } => sum.copy(stream, copier),
            Self::Atomic(sum) => sum.copy(stream, copier).map(f64::from),
        }
    }
}
