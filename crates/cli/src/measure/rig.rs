//! The device's end of copies, and the marks around them.

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, Event, Stopwatch, Stream};
use pinlane_report::Route;

/// Keeps a stream busy until all that is measured has been submitted. Ample for any machine.
const HEAD_START_NS: u64 = 40_000;
const HEAD_START_BOTH_NS: u64 = 80_000;

/// Streams, events and device memory, and what is sent.
pub(super) struct Wires<'a> {
    pub(super) device: &'a Device,
    /// All that touches `there` goes onto the one, all that touches `back` onto the other.
    pub(super) up: Stream,
    pub(super) down: Stream,
    /// Where bytes go to, and where they come from: it holds `data`.
    pub(super) there: DeviceBuf<u8>,
    pub(super) back: DeviceBuf<u8>,
    pub(super) data: Vec<u8>,
    /// Ordinary memory for what comes back.
    pub(super) scratch: Vec<u8>,
    kernels: Builtin,
    pub(super) stopwatch: Stopwatch,
    start: Event,
    end: Event,
    /// The other direction is done.
    returned: Event,
}

impl<'a> Wires<'a> {
    pub(super) fn new(device: &'a Device, bytes: usize) -> anyhow::Result<Self> {
        const TOO_LARGE: &str = "no room on the device; choose smaller copies";
        let wires = Self {
            up: device.stream()?,
            down: device.stream()?,
            there: device.alloc(bytes).context(TOO_LARGE)?,
            back: device.alloc(bytes).context(TOO_LARGE)?,
            data: recognisable(bytes)?,
            scratch: room(bytes)?,
            kernels: Builtin::load(device)?,
            stopwatch: device.stopwatch()?,
            start: device.event_with_timing()?,
            end: device.event_with_timing()?,
            returned: device.event()?,
            device,
        };
        let mut wires = wires;
        wires
            .down
            .driver_copy_to_device(&wires.data, &mut wires.back)?;
        Ok(wires)
    }

    /// The stream that the marks of a direction are on.
    fn main(&self, route: Route) -> &Stream {
        match route {
            Route::D2h => &self.down,
            Route::H2d | Route::Both => &self.up,
        }
    }

    /// The first mark, behind some time in which the copy is submitted.
    pub(super) fn begin_ahead(&self, route: Route) -> anyhow::Result<()> {
        let head_start_ns = match route {
            Route::Both => HEAD_START_BOTH_NS,
            Route::H2d | Route::D2h => HEAD_START_NS,
        };
        self.kernels.spin(self.main(route), head_start_ns)?;
        self.begin(route)
    }

    /// The first mark.
    pub(super) fn begin(&self, route: Route) -> anyhow::Result<()> {
        self.main(route).record(&self.start)?;
        if route == Route::Both {
            self.down.wait(&self.start)?;
        }
        Ok(())
    }

    /// The last mark, behind all that was submitted.
    pub(super) fn end(&self, route: Route) -> anyhow::Result<()> {
        if route == Route::Both {
            self.down.record(&self.returned)?;
            self.up.wait(&self.returned)?;
        }
        Ok(self.main(route).record(&self.end)?)
    }

    /// Nanoseconds between the marks, once the last one is there.
    pub(super) fn elapsed_ns(&self) -> anyhow::Result<u64> {
        self.end.synchronize()?;
        let ns = self.start.elapsed_ns(&self.end)?;
        u64::try_from(ns).context("the device's clock ran backwards")
    }

    /// Nothing of what was sent is on the device any more.
    pub(super) fn forget(&mut self, bytes: usize) -> anyhow::Result<()> {
        self.up.fill_bytes(self.there.range_mut(..bytes), 0)?;
        self.up.synchronize()?;
        Ok(())
    }

    /// Whether what was sent is on the device.
    pub(super) fn arrived(&mut self, bytes: usize) -> anyhow::Result<bool> {
        let scratch = &mut self.scratch[..bytes];
        scratch.fill(0);
        self.up
            .driver_copy_to_host(self.there.range(..bytes), scratch)?;
        Ok(*scratch == self.data[..bytes])
    }
}

/// Ordinary memory, all pages touched.
pub(super) fn room(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .context("no room in the host's memory; choose smaller copies")?;
    // Not zeros, which the system would hand out untouched; and in blocks, which are copied fast.
    let block = [1; 1 << 16];
    while memory.len() < bytes {
        let part = block.len().min(bytes - memory.len());
        memory.extend_from_slice(&block[..part]);
    }
    Ok(memory)
}

/// Bytes that no other buffer holds by chance.
fn recognisable(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let block: Vec<u8> = (0..65_521u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8 | 1)
        .collect();
    let mut data = room(bytes)?;
    for part in data.chunks_mut(block.len()) {
        part.copy_from_slice(&block[..part.len()]);
    }
    Ok(data)
}
