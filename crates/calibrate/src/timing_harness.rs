//! Common parts of all measurements, through public calls only: the figures are what a program pays.

use std::cell::Cell;

use pinlane_core::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Result, Stream};
use pinlane_model::median;

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Size of the largest copy.
pub(super) const BYTES: usize = 32 * MIB;

/// Number of back-to-back copies of that size.
pub(super) const COPIES: usize = 4;

/// Number of samples per median in real time. A simulated device repeats exactly.
const ROUNDS: usize = 21;

/// How long a stream is kept busy per operation, so that all measured work is submitted before it starts
/// and host time is not measured. Enough on an idle machine; doubled if it is not.
const HEAD_START_NS: u64 = 12_000;

/// How often it is doubled at most.
const DOUBLINGS: u32 = 5;

/// Streams, buffers and clocks.
pub(super) struct Bench<'a> {
    pub(super) device: &'a Device,
    clock: &'a dyn Fn() -> u64,
    pub(super) stream: Stream,
    pub(super) other: Stream,
    pub(super) kernels: Builtin,
    /// Buffer to send from, and buffer to receive into.
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

    /// Median device time of each of `count` operations that `submit` puts on the stream.
    pub(super) fn device_ns(
        &mut self,
        count: usize,
        mut submit: impl FnMut(&Self) -> Result<()>,
    ) -> Result<u64> {
        let [ns] = self.medians(|bench| {
            let ns = bench.span_ns(count, |end| {
                (0..count).try_for_each(|_| submit(bench))?;
                end.mark()
            })?;
            Ok([ns / count as u64])
        })?;
        Ok(ns)
    }

    /// Device time of what `submit` puts on the stream, about `count` operations, until it marks the end.
    /// Retries if the host was too slow to keep the stream busy.
    pub(super) fn span_ns(
        &self,
        count: usize,
        mut submit: impl FnMut(&End<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut head_start_ns = 20_000 + count as u64 * HEAD_START_NS;
        for doubled in 0.. {
            let end = End {
                stream: &self.stream,
                start: self.timing()?,
                end: self.timing()?,
                was_in_time: Cell::new(true),
            };
            self.kernels.spin(&self.stream, head_start_ns)?;
            self.stream.record(&end.start)?;
            submit(&end)?;
            end.end.synchronize()?;
            self.stream.synchronize()?;
            if end.was_in_time.get() || doubled == DOUBLINGS {
                return Ok(u64::try_from(end.start.elapsed_ns(&end.end)?).unwrap_or(0));
            }
            head_start_ns *= 2;
        }
        unreachable!("the last doubling returns")
    }

    /// Device time of each of `count` copies of `bytes` to the device, measured once.
    pub(super) fn up_ns(&self, bytes: usize, count: usize) -> Result<u64> {
        let all_ns = self.span_ns(count, |end| {
            self.device.scope(|scope| {
                for _ in 0..count {
                    let target = self.there.shared_range_mut(0..bytes);
                    scope.upload(&self.stream, self.outbound.range(..bytes), target)?;
                }
                end.mark()
            })
        })?;
        Ok(all_ns / count as u64)
    }

    /// Like [`up_ns`](Self::up_ns), from the device.
    pub(super) fn down_ns(&mut self, bytes: usize, count: usize) -> Result<u64> {
        let mut inbound = std::mem::replace(&mut self.inbound, self.device.pinned(0)?);
        let measured = self.span_ns(count, |end| {
            self.device.scope(|scope| {
                for here in inbound.range_mut(..count * bytes).chunks(bytes) {
                    scope.download(&self.stream, self.back.range(..bytes), here)?;
                }
                end.mark()
            })
        });
        self.inbound = inbound;
        Ok(measured? / count as u64)
    }

    /// Host time of each of `count` calls: the median of all rounds.
    pub(super) fn host_ns(
        &mut self,
        count: usize,
        mut call: impl FnMut(&Self) -> Result<()>,
    ) -> Result<u64> {
        let [ns] = self.medians(|bench| Ok([bench.calls_ns(count, || call(bench))?]))?;
        Ok(ns)
    }

    /// Like [`host_ns`](Self::host_ns), measured once.
    pub(super) fn calls_ns(
        &self,
        count: usize,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let (called, ns) = self.timed(|| (0..count).try_for_each(|_| call()));
        called?;
        self.stream.synchronize()?;
        Ok(ns / count as u64)
    }

    /// The result of `work` and its host time.
    pub(super) fn timed<R>(&self, work: impl FnOnce() -> R) -> (R, u64) {
        let began_ns = (self.clock)();
        let result = work();
        (result, (self.clock)().saturating_sub(began_ns))
    }

    /// Measures several things round-robin, so that a busy moment of the machine spoils one sample of each
    /// instead of all samples of one. Returns the medians, in real time without the first round.
    pub(super) fn medians<const N: usize>(
        &mut self,
        mut measure: impl FnMut(&mut Self) -> Result<[u64; N]>,
    ) -> Result<[u64; N]> {
        let rounds = match self.device.info().simulated {
            Some(_) => 1,
            None => {
                measure(self)?;
                ROUNDS
            }
        };
        let mut times = [const { Vec::new() }; N];
        for _ in 0..rounds {
            for (times, ns) in times.iter_mut().zip(measure(self)?) {
                times.push(ns);
            }
        }
        Ok(times.map(median))
    }

    pub(super) fn timing(&self) -> Result<Event> {
        self.device.event_with_timing()
    }
}

/// Marks the end of the measured work.
pub(super) struct End<'a> {
    stream: &'a Stream,
    start: Event,
    end: Event,
    /// Whether everything was submitted before the device started.
    was_in_time: Cell<bool>,
}

impl End<'_> {
    /// Marks the end here.
    pub(super) fn mark(&self) -> Result<()> {
        self.stream.record(&self.end)?;
        self.was_in_time.set(!self.start.is_done()?);
        Ok(())
    }
}
