//! What every measurement needs. Everything goes through the library's own calls, so that what is
//! measured is what a program pays.

use crate::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Result, Stream};

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// The largest copy.
pub(super) const BYTES: usize = 32 * MIB;

/// Copies of that size one behind the other.
pub(super) const COPIES: usize = 4;

/// Times that a figure is the median of, where time is real. A simulated device gives the same
/// again and again.
const ROUNDS: usize = 7;

/// Keeps a stream busy until all that is measured has been submitted, so that the host is not what
/// is measured. Per operation; ample for any machine.
const HEAD_START_NS: u64 = 12_000;

/// Streams, buffers and clocks.
pub(super) struct Bench<'a> {
    pub(super) device: &'a Device,
    clock: &'a dyn Fn() -> u64,
    pub(super) stream: Stream,
    pub(super) other: Stream,
    pub(super) kernels: Builtin,
    /// What is sent, and where it comes back to.
    pub(super) outbound: PinnedBuf<u8>,
    pub(super) inbound: PinnedBuf<u8>,
    pub(super) there: DeviceBuf<u8>,
    pub(super) back: DeviceBuf<u8>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(device: &'a Device, clock: &'a dyn Fn() -> u64) -> Result<Self> {
        let mut outbound = device.pinned(BYTES)?;
        outbound.fill(1);
        Ok(Self {
            device,
            clock,
            stream: device.stream()?,
            other: device.stream()?,
            kernels: Builtin::load(device)?,
            outbound,
            inbound: device.pinned(COPIES * BYTES)?,
            there: device.alloc(BYTES)?,
            back: device.alloc(BYTES)?,
        })
    }

    /// The device's time for each of `count` operations that `submit` puts onto the stream one
    /// after the other.
    pub(super) fn device_ns(
        &self,
        count: usize,
        mut submit: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let (start, end) = (self.timing()?, self.timing()?);
        let times = (0..self.rounds()).map(|_| {
            self.kernels
                .spin(&self.stream, 20_000 + count as u64 * HEAD_START_NS)?;
            self.stream.record(&start)?;
            for _ in 0..count {
                submit()?;
            }
            self.stream.record(&end)?;
            end.synchronize()?;
            self.stream.synchronize()?;
            let ns = start.elapsed_ns(&end)?;
            Ok(u64::try_from(ns).unwrap_or(0) / count as u64)
        });
        median(times)
    }

    /// The device's time for each of `count` copies of `bytes` to the device.
    pub(super) fn up_ns(&mut self, bytes: usize, count: usize) -> Result<u64> {
        let mut there = std::mem::replace(&mut self.there, self.device.alloc(0)?);
        let measured = self.device.scope(|scope| {
            self.device_ns(count, || {
                let source = self.outbound.range(..bytes);
                scope
                    .upload(&self.stream, source, there.range_mut(..bytes))
                    .map(drop)
            })
        });
        self.there = there;
        measured
    }

    /// The same from the device.
    pub(super) fn down_ns(&mut self, bytes: usize, count: usize) -> Result<u64> {
        let mut inbound = std::mem::replace(&mut self.inbound, self.device.pinned(0)?);
        let times = (0..self.rounds()).map(|_| {
            let (start, end) = (self.timing()?, self.timing()?);
            self.device.scope(|scope| {
                self.kernels
                    .spin(&self.stream, 20_000 + count as u64 * HEAD_START_NS)?;
                self.stream.record(&start)?;
                let mut rest = inbound.range_mut(..);
                for _ in 0..count {
                    let (here, later) = rest.split_at(bytes);
                    rest = later;
                    scope.download(&self.stream, self.back.range(..bytes), here)?;
                }
                self.stream.record(&end)
            })?;
            self.stream.synchronize()?;
            let ns = start.elapsed_ns(&end)?;
            Ok(u64::try_from(ns).unwrap_or(0) / count as u64)
        });
        let measured = median(times);
        self.inbound = inbound;
        measured
    }

    /// The host's time for each of `count` calls.
    pub(super) fn host_ns(
        &self,
        count: usize,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let times = (0..self.rounds()).map(|_| {
            let began = self.now_ns();
            for _ in 0..count {
                call()?;
            }
            let ns = self.now_ns().saturating_sub(began) / count as u64;
            self.stream.synchronize()?;
            Ok(ns)
        });
        median(times)
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds_times(1)
    }

    /// So many times the usual rounds, where time is real.
    pub(super) fn rounds_times(&self, times: usize) -> usize {
        match self.device.info().simulated {
            Some(_) => 1,
            None => ROUNDS * times,
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    pub(super) fn timing(&self) -> Result<Event> {
        self.device.event_with_timing()
    }
}

/// The middle one of some times.
pub(super) fn median(times: impl Iterator<Item = Result<u64>>) -> Result<u64> {
    let mut times = times.collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
