//! The three ways, each between events of the device.

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Result, Stream};
use pinlane_report::{DotKernel, DotTimes};

use super::work::{Fetch, Work};

/// Where the vectors lie, and who copies them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Standard,
    Pinned,
    Express,
}

/// What a run took and gave.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) times: DotTimes,
    pub(super) value: f64,
}

/// All that the three ways need.
pub(super) struct Bench<'a> {
    device: &'a Device,
    kernels: Builtin,
    stream: Stream,
    marks: Marks,
    on_x: DeviceBuf<f32>,
    on_y: DeviceBuf<f32>,
    work: Work,
    pinned: [PinnedBuf<f32>; 2],
    ordinary: [Vec<f32>; 2],
}

impl<'a> Bench<'a> {
    /// `pinned` and `ordinary` are of the same length; the first is filled from the second here.
    pub(super) fn new(
        device: &'a Device,
        kernel: DotKernel,
        mut pinned: [PinnedBuf<f32>; 2],
        ordinary: [Vec<f32>; 2],
    ) -> anyhow::Result<Self> {
        for (target, source) in pinned.iter_mut().zip(&ordinary) {
            target.copy_from_slice(source);
        }
        let items = ordinary[0].len();
        let alloc = || device.alloc(items);
        let no_room = "no room on the device; choose a smaller -n";
        Ok(Self {
            device,
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            marks: Marks::new(device)?,
            on_x: alloc().context(no_room)?,
            on_y: alloc().context(no_room)?,
            work: Work::new(device, kernel, items).context(no_room)?,
            pinned,
            ordinary,
        })
    }

    /// Each way once before the clock counts, then `repeat` times.
    pub(super) fn runs(&mut self, way: Way, repeat: u32) -> anyhow::Result<Vec<Run>> {
        self.once(way)?;
        (0..repeat).map(|_| self.once(way)).collect()
    }

    /// Another kernel, `repeat` times on what is on the device; its times have no copies.
    pub(super) fn kernel_alone(
        &mut self,
        kernel: DotKernel,
        repeat: u32,
    ) -> anyhow::Result<Vec<Run>> {
        let mut work = Work::new(self.device, kernel, self.ordinary[0].len())?;
        let mut once = || -> anyhow::Result<Run> {
            let Self { stream, marks, .. } = &*self;
            marks.at(stream, 0)?;
            marks.at(stream, 1)?;
            work.launch(&self.kernels, stream, &self.on_x, &self.on_y)?;
            marks.at(stream, 2)?;
            let value = work.fetch(stream, Fetch::Driver)?;
            marks.at(stream, 3)?;
            Ok(Run {
                times: marks.times()?,
                value,
            })
        };
        once()?;
        (0..repeat).map(|_| once()).collect()
    }

    fn once(&mut self, way: Way) -> anyhow::Result<Run> {
        let value = match way {
            Way::Pinned => self.pinned()?,
            Way::Standard => self.ordinary(Fetch::Driver)?,
            Way::Express => self.ordinary(Fetch::Express)?,
        };
        let times = self.marks.times()?;
        Ok(Run { times, value })
    }

    /// Everything is submitted at once, and the host waits at the end.
    fn pinned(&mut self) -> Result<f64> {
        let Self {
            kernels,
            stream,
            marks,
            on_x,
            on_y,
            work,
            pinned: [x, y],
            ..
        } = self;
        let lent = &mut *work;
        self.device.scope(|scope| {
            marks.at(stream, 0)?;
            scope.upload(stream, &*x, &mut *on_x)?;
            scope.upload(stream, &*y, &mut *on_y)?;
            marks.at(stream, 1)?;
            lent.launch(kernels, stream, on_x, on_y)?;
            marks.at(stream, 2)?;
            lent.download(scope, stream)?;
            marks.at(stream, 3)
        })?;
        Ok(work.landed())
    }

    fn ordinary(&mut self, how: Fetch) -> Result<f64> {
        let (stream, marks, [x, y]) = (&self.stream, &self.marks, &self.ordinary);
        marks.at(stream, 0)?;
        match how {
            Fetch::Driver => {
                stream.driver_copy_to_device(x, &mut self.on_x)?;
                stream.driver_copy_to_device(y, &mut self.on_y)?;
            }
            Fetch::Express => {
                stream.copy_to_device(x, &mut self.on_x)?;
                stream.copy_to_device(y, &mut self.on_y)?;
            }
        }
        marks.at(stream, 1)?;
        self.work
            .launch(&self.kernels, stream, &self.on_x, &self.on_y)?;
        marks.at(stream, 2)?;
        let value = self.work.fetch(stream, how)?;
        marks.at(stream, 3)?;
        Ok(value)
    }
}

/// Events before the copies, before the kernels, before the result's way back, and behind it.
struct Marks([Event; 4]);

impl Marks {
    fn new(device: &Device) -> Result<Self> {
        let event = || device.event_with_timing();
        Ok(Self([event()?, event()?, event()?, event()?]))
    }

    fn at(&self, stream: &Stream, number: usize) -> Result<()> {
        stream.record(&self.0[number])
    }

    /// The times between them, once the last has fired.
    fn times(&self) -> anyhow::Result<DotTimes> {
        let [start, copied, added, end] = &self.0;
        end.synchronize()?;
        let between = |from: &Event, to: &Event| {
            u64::try_from(from.elapsed_ns(to)?).context("the device's clock ran backwards")
        };
        Ok(DotTimes::new(
            between(start, copied)?,
            between(copied, added)?,
            between(added, end)?,
        ))
    }
}

/// The run whose total is the middle one.
pub(super) fn median(runs: &[Run]) -> Run {
    let mut sorted = runs.to_vec();
    sorted.sort_by_key(|run| run.times.total_ns);
    sorted[(sorted.len() - 1) / 2]
}
