//! The job: bytes to the device, a kernel over them, bytes back, and work for the CPU.

use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Stream};
use pinlane_sim::Sim;

/// Rounds of the kernel between which its time grows evenly: below, memory is what limits it.
const ROUNDS: [u32; 2] = [2048, 4096];

/// How the host's time passes.
pub(super) enum Clock<'a> {
    Real,
    Simulated(&'a Sim),
}

impl Clock<'_> {
    /// The CPU works for so long.
    pub(super) fn work(&self, ns: u64) {
        match self {
            Self::Real => {
                let until = Instant::now() + Duration::from_nanos(ns);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            Self::Simulated(sim) => sim.host_work(ns),
        }
    }
}

/// All that the five ways need.
pub(super) struct Lesson<'a> {
    pub(super) device: &'a Device,
    pub(super) clock: Clock<'a>,
    pub(super) kernels: Builtin,
    pub(super) stream: Stream,
    /// Where marks of the host's time go: nothing else does.
    pub(super) idle: Stream,
    pub(super) input: PinnedBuf<u32>,
    pub(super) output: PinnedBuf<u32>,
    pub(super) on_device: DeviceBuf<u32>,
    /// Rounds of the kernel, and what it takes alone.
    pub(super) rounds: u32,
    pub(super) kernel_ns: u64,
    pub(super) host_ns: u64,
}

impl<'a> Lesson<'a> {
    pub(super) fn new(device: &'a Device, clock: Clock<'a>, bytes: usize) -> anyhow::Result<Self> {
        let len = bytes.div_ceil(4).max(1);
        let advice = "choose a smaller --size";
        let mut input = device.pinned(len).context(advice)?;
        for (word, number) in input.iter_mut().zip(0u32..) {
            *word = number.wrapping_mul(0x9e37_79b9);
        }
        Ok(Self {
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            idle: device.stream()?,
            input,
            output: device.pinned(len).context(advice)?,
            on_device: device.alloc(len).context(advice)?,
            device,
            clock,
            rounds: 1,
            kernel_ns: 0,
            host_ns: 0,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.input.len() * 4
    }

    /// What the copy to the device takes alone.
    pub(super) fn upload_ns(&mut self) -> anyhow::Result<u64> {
        let mut shortest = u64::MAX;
        for _ in 0..3 {
            let (start, end) = (
                self.device.event_with_timing()?,
                self.device.event_with_timing()?,
            );
            self.device.scope(|scope| {
                self.stream.record(&start)?;
                scope.upload(&self.stream, &self.input, &mut self.on_device)?;
                self.stream.record(&end)
            })?;
            self.stream.synchronize()?;
            shortest = shortest.min(u64::try_from(start.elapsed_ns(&end)?)?);
        }
        Ok(shortest)
    }

    /// Choose the kernel's rounds so that it takes about so long alone.
    pub(super) fn set_kernel(&mut self, ns: u64) -> anyhow::Result<()> {
        let [few, many] = [self.time_kernel(ROUNDS[0])?, self.time_kernel(ROUNDS[1])?];
        let per_round =
            (many.saturating_sub(few) as f64 / f64::from(ROUNDS[1] - ROUNDS[0])).max(1e-9);
        let beside = few as f64 - per_round * f64::from(ROUNDS[0]);
        let rounds = (ns as f64 - beside.max(0.0)) / per_round;
        self.rounds = rounds.round().clamp(1.0, 1e9) as u32;
        self.kernel_ns = self.time_kernel(self.rounds)?;
        Ok(())
    }

    /// What the kernel takes over all data.
    fn time_kernel(&mut self, rounds: u32) -> anyhow::Result<u64> {
        let mut shortest = u64::MAX;
        for _ in 0..3 {
            let (start, end) = (
                self.device.event_with_timing()?,
                self.device.event_with_timing()?,
            );
            self.stream.record(&start)?;
            self.kernels
                .churn(&self.stream, rounds, &mut self.on_device)?;
            self.stream.record(&end)?;
            self.stream.synchronize()?;
            shortest = shortest.min(u64::try_from(start.elapsed_ns(&end)?)?);
        }
        Ok(shortest)
    }
}
