//! The device's end of copies, and the events around them.

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, Event, Stopwatch, Stream};
use pinlane_report::Route;

/// Keeps a stream busy until the measured work is submitted. Ample for any machine.
const DELAY_NS: u64 = 40_000;
const DELAY_BOTH_NS: u64 = 80_000;

pub(super) const TOO_LARGE: &str = "not enough device memory; use smaller copies";

pub(super) struct Rig<'a> {
    pub(super) device: &'a Device,
    /// The stream of everything that touches `target`.
    pub(super) up: Stream,
    /// The stream of everything that touches `source`.
    pub(super) down: Stream,
    /// Receives uploads.
    pub(super) target: DeviceBuf<u8>,
    /// Feeds downloads: it holds `data`.
    pub(super) source: DeviceBuf<u8>,
    pub(super) data: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    kernels: Builtin,
    pub(super) stopwatch: Stopwatch,
    start: Event,
    end: Event,
    /// The download of a copy in both directions is done.
    down_done: Event,
}

impl<'a> Rig<'a> {
    pub(super) fn new(device: &'a Device, bytes: usize) -> anyhow::Result<Self> {
        let mut rig = Self {
            up: device.stream()?,
            down: device.stream()?,
            target: device.alloc(bytes).context(TOO_LARGE)?,
            source: device.alloc(bytes).context(TOO_LARGE)?,
            data: pattern(bytes)?,
            scratch: touched(bytes)?,
            kernels: Builtin::load(device)?,
            stopwatch: device.stopwatch()?,
            start: device.event_with_timing()?,
            end: device.event_with_timing()?,
            down_done: device.event()?,
            device,
        };
        rig.down.driver_copy_to_device(&rig.data, &mut rig.source)?;
        Ok(rig)
    }

    /// The stream that start and end are recorded on.
    fn timed_stream(&self, route: Route) -> &Stream {
        match route {
            Route::D2h => &self.down,
            Route::H2d | Route::Both => &self.up,
        }
    }

    /// As [`start`](Self::start), after a kernel that leaves time to submit the copy.
    pub(super) fn start_after_delay(&self, route: Route) -> anyhow::Result<()> {
        let delay_ns = match route {
            Route::Both => DELAY_BOTH_NS,
            Route::H2d | Route::D2h => DELAY_NS,
        };
        self.kernels.spin(self.timed_stream(route), delay_ns)?;
        self.start(route)
    }

    pub(super) fn start(&self, route: Route) -> anyhow::Result<()> {
        self.timed_stream(route).record(&self.start)?;
        if route == Route::Both {
            self.down.wait(&self.start)?;
        }
        Ok(())
    }

    /// Records the end, after everything submitted so far.
    pub(super) fn end(&self, route: Route) -> anyhow::Result<()> {
        if route == Route::Both {
            self.down.record(&self.down_done)?;
            self.up.wait(&self.down_done)?;
        }
        Ok(self.timed_stream(route).record(&self.end)?)
    }

    /// Waits for the end. Returns the nanoseconds since the start.
    pub(super) fn elapsed_ns(&self) -> anyhow::Result<u64> {
        self.end.synchronize()?;
        let ns = self.start.elapsed_ns(&self.end)?;
        u64::try_from(ns).context("the device's clock ran backwards")
    }

    pub(super) fn clear(&mut self, bytes: usize) -> anyhow::Result<()> {
        self.up.fill_bytes(self.target.range_mut(..bytes), 0)?;
        self.up.synchronize()?;
        Ok(())
    }

    /// Whether the target on the device holds the data.
    pub(super) fn arrived(&mut self, bytes: usize) -> anyhow::Result<bool> {
        let scratch = &mut self.scratch[..bytes];
        scratch.fill(0);
        self.up
            .driver_copy_to_host(self.target.range(..bytes), scratch)?;
        Ok(*scratch == self.data[..bytes])
    }
}

/// Pageable memory with all pages touched.
pub(super) fn touched(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut memory = Vec::new();
    let reserved = memory.try_reserve_exact(bytes);
    reserved.context("not enough host memory; use smaller copies")?;
    // Ones, because the system would not back zeros with memory; in blocks, which is fast in debug builds.
    let block = [1; 1 << 16];
    while memory.len() < bytes {
        let part = block.len().min(bytes - memory.len());
        memory.extend_from_slice(&block[..part]);
    }
    Ok(memory)
}

/// Bytes that no other buffer holds by chance.
fn pattern(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let byte = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8 | 1;
    let block: Vec<u8> = (0..65_521).map(byte).collect();
    let mut data = touched(bytes)?;
    for part in data.chunks_mut(block.len()) {
        part.copy_from_slice(&block[..part.len()]);
    }
    Ok(data)
}
