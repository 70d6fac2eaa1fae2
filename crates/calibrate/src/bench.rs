//! What every measurement needs. Everything goes through the library's own calls, so that what is
//! measured is what a program pays.

use std::cell::Cell;

use pinlane_core::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Result, Stream};

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// The largest copy.
pub(super) const BYTES: usize = 32 * MIB;

/// Copies of that size one behind the other.
pub(super) const COPIES: usize = 4;

/// Times that a figure is the median of, where time is real. A simulated device gives the same
/// again and again.
const ROUNDS: usize = 21;

/// Keeps a stream busy until all that is measured has been submitted, so that the host is not what
/// is measured. Per operation; enough on a machine that is not busy, and doubled where it is.
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
    /// after the other: the median of all rounds.
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

    /// The device's time for what `submit` puts onto the stream, some `count` operations, until it
    /// marks the end. Where the host was too slow to keep the stream busy, it is done again.
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

    /// The device's time for each of `count` copies of `bytes` to the device, once.
    pub(super) fn up_ns(&mut self, bytes: usize, count: usize) -> Result<u64> {
        let mut there = std::mem::replace(&mut self.there, self.device.alloc(0)?);
        let measured = self.span_ns(count, |end| {
            self.device.scope(|scope| {
                for _ in 0..count {
                    let source = self.outbound.range(..bytes);
                    scope.upload(&self.stream, source, there.range_mut(..bytes))?;
                }
                end.mark()
            })
        });
        self.there = there;
        Ok(measured? / count as u64)
    }

    /// The same from the device.
    pub(super) fn down_ns(&mut self, bytes: usize, count: usize) -> Result<u64> {
        let mut inbound = std::mem::replace(&mut self.inbound, self.device.pinned(0)?);
        let measured = self.span_ns(count, |end| {
            self.device.scope(|scope| {
                for here in inbound.range_mut(..count * bytes).pieces(bytes) {
                    scope.download(&self.stream, self.back.range(..bytes), here)?;
                }
                end.mark()
            })
        });
        self.inbound = inbound;
        Ok(measured? / count as u64)
    }

    /// The host's time for each of `count` calls: the median of all rounds.
    pub(super) fn host_ns(
        &mut self,
        count: usize,
        mut call: impl FnMut(&Self) -> Result<()>,
    ) -> Result<u64> {
        let [ns] = self.medians(|bench| Ok([bench.calls_ns(count, || call(bench))?]))?;
        Ok(ns)
    }

    /// The same, once.
    pub(super) fn calls_ns(
        &self,
        count: usize,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let began = self.now_ns();
        for _ in 0..count {
            call()?;
        }
        let ns = self.now_ns().saturating_sub(began) / count as u64;
        self.stream.synchronize()?;
        Ok(ns)
    }

    /// Measure several things, in turns: a busy moment of the machine then spoils one time in so
    /// many of each, and not all of one. The median of each. Where time is real, the first turn
    /// does not count.
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

    pub(super) fn now_ns(&self) -> u64 {
        (self.clock)()
    }

    pub(super) fn timing(&self) -> Result<Event> {
        self.device.event_with_timing()
    }
}

/// Ends what is measured.
pub(super) struct End<'a> {
    stream: &'a Stream,
    start: Event,
    end: Event,
    /// Whether the device had not begun when all was submitted.
    was_in_time: Cell<bool>,
}

impl End<'_> {
    /// The end is here.
    pub(super) fn mark(&self) -> Result<()> {
        self.stream.record(&self.end)?;
        self.was_in_time.set(!self.start.is_done()?);
        Ok(())
    }
}

/// The middle one of some times.
pub(super) fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}
