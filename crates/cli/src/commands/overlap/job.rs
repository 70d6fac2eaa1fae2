//! The job: bytes to the device, a kernel over them, bytes back, and work for the CPU.

use anyhow::Context;
use pinlane::pipeline::measure_kernel;
use pinlane::{Builtin, Device, DeviceBuf, Event, PinnedBuf, Stream};

use pinlane_model::Profile;
use pinlane_model::pipeline::KernelTime;

use crate::clock::HostClock;

/// With at least this many rounds, the kernel's time grows linearly. With fewer, memory limits it.
const ROUNDS: u32 = 1 << 11;

const ROUNDS_MAX: u32 = 1 << 30;

/// Two kernels whose times differ by less do not show the time of a round.
const DIFFERENCE_NS: u64 = 10_000;

/// How long the kernel takes alone.
pub(super) struct KernelTimes {
    fixed_ns: f64,
    per_round_ns: f64,
    /// The time of one round.
    pub(super) shortest_ns: u64,
    pub(super) longest_ns: u64,
}

impl KernelTimes {
    /// Whether the kernel can take about `ns`.
    pub(super) fn contains(&self, ns: u64) -> bool {
        let margin_ns = ns / 4;
        ns + margin_ns >= self.shortest_ns && ns - margin_ns <= self.longest_ns
    }

    fn rounds(&self, ns: u64) -> u32 {
        let rounds = (ns as f64 - self.fixed_ns) / self.per_round_ns;
        rounds.round().clamp(1.0, ROUNDS_MAX.into()) as u32
    }
}

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
    /// `bytes` is a multiple of 4.
    pub(super) fn new(
        device: &'a Device,
        clock: HostClock<'a>,
        bytes: usize,
    ) -> anyhow::Result<Self> {
        let len = bytes / size_of::<u32>();
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

    pub(super) fn kernel_times(&mut self) -> anyhow::Result<KernelTimes> {
        let mut rounds = ROUNDS;
        let (few_ns, more_ns) = loop {
            let few_ns = self.time_kernel(rounds)?;
            let more_ns = self.time_kernel(rounds * 2)?.saturating_sub(few_ns);
            if more_ns >= DIFFERENCE_NS || rounds > ROUNDS_MAX / 16 {
                break (few_ns, more_ns);
            }
            rounds *= 8;
        };
        let per_round_ns = (more_ns as f64 / f64::from(rounds)).max(1e-9);
        let fixed_ns = (few_ns as f64 - per_round_ns * f64::from(rounds)).max(0.0);
        Ok(KernelTimes {
            fixed_ns,
            per_round_ns,
            shortest_ns: self.time_kernel(1)?,
            longest_ns: (fixed_ns + per_round_ns * f64::from(ROUNDS_MAX)) as u64,
        })
    }

    /// Chooses the rounds of the kernel so that it takes about `ns` alone.
    pub(super) fn set_kernel(&mut self, times: &KernelTimes, ns: u64) -> anyhow::Result<()> {
        self.rounds = times.rounds(ns);
        self.kernel_ns = self.time_kernel(self.rounds)?;
        Ok(())
    }

    /// Times of the kernel on chunks of any size.
    pub(super) fn measure_kernel(&mut self, profile: &Profile) -> anyhow::Result<KernelTime> {
        let (kernels, rounds, on_device) = (&self.kernels, self.rounds, &mut self.on_device);
        let len = on_device.len();
        let kernel = measure_kernel(self.device, profile, len, 4, |stream, items| {
            kernels.churn(stream, rounds, on_device.range_mut(items))
        })?;
        Ok(kernel)
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
