//! The job: bytes to the device, a kernel over them, bytes back, and work for the CPU.

use anyhow::Context;
use pinlane::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Stream};

use crate::clock::HostClock;

/// Rounds of the kernel between which its time grows linearly: with fewer, memory limits it.
const ROUNDS: [u32; 2] = [2048, 4096];

/// What all five variants need.
pub(super) struct OverlapJob<'a> {
    pub(super) device: &'a Device,
    pub(super) clock: HostClock<'a>,
    pub(super) kernels: Builtin,
    pub(super) stream: Stream,
    /// Otherwise unused: its events time the host's work.
    pub(super) idle: Stream,
    pub(super) input: PinnedBuf<u32>,
    pub(super) output: PinnedBuf<u32>,
    pub(super) on_device: DeviceBuf<u32>,
    pub(super) rounds: u32,
    pub(super) kernel_ns: u64,
    pub(super) host_ns: u64,
}

impl<'a> OverlapJob<'a> {
    pub(super) fn new(
        device: &'a Device,
        clock: HostClock<'a>,
        bytes: usize,
    ) -> anyhow::Result<Self> {
        let len = bytes.div_ceil(4).max(1);
        let advice = "use a smaller --size";
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

    pub(super) fn upload_ns(&mut self) -> anyhow::Result<u64> {
        self.shortest_ns(|job, start, end| {
            // The end is recorded inside the scope, which waits for the copy when it closes.
            job.device.scope(|scope| {
                job.stream.record(start)?;
                scope.upload(&job.stream, &job.input, &mut job.on_device)?;
                job.stream.record(end)
            })
        })
    }

    /// Chooses the rounds of the kernel so that it takes about `ns` alone.
    pub(super) fn set_kernel(&mut self, ns: u64) -> anyhow::Result<()> {
        let [few, many] = [self.time_kernel(ROUNDS[0])?, self.time_kernel(ROUNDS[1])?];
        let per_round =
            (many.saturating_sub(few) as f64 / f64::from(ROUNDS[1] - ROUNDS[0])).max(1e-9);
        let fixed = few as f64 - per_round * f64::from(ROUNDS[0]);
        let rounds = (ns as f64 - fixed.max(0.0)) / per_round;
        self.rounds = rounds.round().clamp(1.0, 1e9) as u32;
        self.kernel_ns = self.time_kernel(self.rounds)?;
        Ok(())
    }

    fn time_kernel(&mut self, rounds: u32) -> anyhow::Result<u64> {
        self.shortest_ns(|job, start, end| {
            job.stream.record(start)?;
            job.kernels.churn(&job.stream, rounds, &mut job.on_device)?;
            job.stream.record(end)
        })
    }

    /// The shortest of three times between two events that `submit` records.
    fn shortest_ns(
        &mut self,
        mut submit: impl FnMut(&mut Self, &Event, &Event) -> pinlane::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut shortest = u64::MAX;
        for _ in 0..3 {
            let start = self.device.event_with_timing()?;
            let end = self.device.event_with_timing()?;
            submit(self, &start, &end)?;
            self.stream.synchronize()?;
            shortest = shortest.min(u64::try_from(start.elapsed_ns(&end)?)?);
        }
        Ok(shortest)
    }
}
