//! Measuring copies. The clock is the device's own, read through events: it is the right one for a
//! GPU, and the only one that a simulated device has.

use anyhow::{Context, bail};
use pinlane::{Device, DeviceBuf, Event, PinnedTarget, Stream};
use pinlane_report::{Figure, MemoryKind, Row};

/// Copies before the ones that count: the first ones pay for what is set up lazily.
const WARM_UP: u32 = 1;

/// All that a measurement needs.
pub(crate) struct Bench<'d> {
    device: &'d Device,
    stream: Stream,
    start: Event,
    end: Event,
    on_device: DeviceBuf<u8>,
    data: Vec<u8>,
    repeat: u32,
}

impl<'d> Bench<'d> {
    /// For copies of `bytes` each, every figure from `repeat` of them.
    pub(crate) fn new(device: &'d Device, bytes: usize, repeat: u32) -> anyhow::Result<Self> {
        Ok(Self {
            device,
            stream: device.stream()?,
            start: device.event_with_timing()?,
            end: device.event_with_timing()?,
            on_device: device
                .alloc(bytes)
                .context("no room on the device; choose a smaller --size")?,
            data: recognisable(bytes),
            repeat,
        })
    }

    /// Both directions of one kind of memory. What comes back must be what went there.
    pub(crate) fn row(&mut self, memory: MemoryKind) -> anyhow::Result<Row> {
        let bytes = self.data.len();
        match memory {
            MemoryKind::Pageable => self.pageable(),
            MemoryKind::Pinned => {
                let buffer = self
                    .device
                    .pinned_from(&self.data)
                    .context("the memory cannot be pinned; choose a smaller --size")?;
                self.page_locked(memory, buffer)
            }
            MemoryKind::Registered => {
                let mut vec = vec![0; bytes];
                vec.copy_from_slice(&self.data);
                let buffer = self.device.register(vec).map_err(pinlane::Error::from)?;
                self.page_locked(memory, buffer)
            }
        }
    }

    fn pageable(&mut self) -> anyhow::Result<Row> {
        let mut h2d_ns = Vec::new();
        for _ in 0..WARM_UP + self.repeat {
            self.stream.record(&self.start)?;
            self.stream
                .driver_copy_to_device(&self.data, &mut self.on_device)?;
            h2d_ns.push(self.elapsed_ns()?);
        }
        let mut back = vec![0; self.data.len()];
        let mut d2h_ns = Vec::new();
        for _ in 0..WARM_UP + self.repeat {
            self.stream.record(&self.start)?;
            self.stream
                .driver_copy_to_host(&self.on_device, &mut back)?;
            d2h_ns.push(self.elapsed_ns()?);
        }
        self.row_of(MemoryKind::Pageable, &h2d_ns, &d2h_ns, &back)
    }

    fn page_locked<B>(&mut self, memory: MemoryKind, mut buffer: B) -> anyhow::Result<Row>
    where
        B: PinnedTarget<u8> + std::ops::DerefMut<Target = [u8]>,
    {
        let mut h2d_ns = Vec::new();
        for _ in 0..WARM_UP + self.repeat {
            self.stream.record(&self.start)?;
            let transfer = self
                .stream
                .upload(buffer, &mut self.on_device)
                .map_err(pinlane::Error::from)?;
            h2d_ns.push(self.elapsed_ns()?);
            buffer = transfer.wait().map_err(pinlane::Error::from)?;
        }
        buffer.fill(0);
        let mut d2h_ns = Vec::new();
        for _ in 0..WARM_UP + self.repeat {
            self.stream.record(&self.start)?;
            let transfer = self
                .stream
                .download(&self.on_device, buffer)
                .map_err(pinlane::Error::from)?;
            d2h_ns.push(self.elapsed_ns()?);
            buffer = transfer.wait().map_err(pinlane::Error::from)?;
        }
        self.row_of(memory, &h2d_ns, &d2h_ns, &buffer)
    }

    /// Time since `start` was recorded, once all work of the stream is done.
    fn elapsed_ns(&self) -> anyhow::Result<u64> {
        self.stream.record(&self.end)?;
        self.end.synchronize()?;
        let ns = self.start.elapsed_ns(&self.end)?;
        u64::try_from(ns).context("the device's clock ran backwards")
    }

    fn row_of(
        &self,
        memory: MemoryKind,
        h2d_ns: &[u64],
        d2h_ns: &[u64],
        back: &[u8],
    ) -> anyhow::Result<Row> {
        if back != self.data {
            bail!("{memory:?} memory: the bytes that came back are not those that were sent");
        }
        let figure = |times: &[u64]| {
            Figure::from_times(back.len() as u64, &times[WARM_UP as usize..]).context(
                "a copy took no time on this device's clock; choose a larger --size or another device",
            )
        };
        Ok(Row {
            memory,
            h2d: figure(h2d_ns)?,
            d2h: figure(d2h_ns)?,
        })
    }
}

/// Bytes that no other buffer holds by chance, all pages touched.
fn recognisable(bytes: usize) -> Vec<u8> {
    let block: Vec<u8> = (0..65_521u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8)
        .collect();
    let mut data = Vec::with_capacity(bytes);
    while data.len() < bytes {
        let part = block.len().min(bytes - data.len());
        data.extend_from_slice(&block[..part]);
    }
    data
}
