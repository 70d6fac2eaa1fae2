//! Jobs drawn at random, and what the model is told about them.

use std::fmt;

use pinlane::model::pipeline::{Job, KernelTime, Memory};
use pinlane::model::{Profile, SplitMix64, median};
use pinlane::{Builtin, Device, DeviceBuf, DeviceSliceMut, PinnedBuf, Result, Stream};

use crate::kernel::KernelKind;

pub const MIB: usize = 1 << 20;

/// Bytes of the smallest and the largest job.
const BYTES: [usize; 2] = [4 * MIB, 2048 * MIB];

/// Shortest and longest kernel.
const KERNEL_NS: [f64; 2] = [50e3, 30e6];

/// Smallest chunk whose kernel is measured.
const SMALLEST: usize = 128 << 10;

/// Streams on which kernels are measured together.
const STREAMS: usize = 4;

/// A job as it was drawn.
pub struct DrawnJob {
    pub kind: KernelKind,
    /// Elements.
    pub len: usize,
    /// What the kernel should take over all of them.
    pub kernel_ns: u64,
}

impl DrawnJob {
    pub fn draw(random: &mut SplitMix64) -> Self {
        let kind = *random.pick(&KernelKind::ALL);
        let bytes = log_uniform(random, BYTES.map(|bytes| bytes as f64));
        Self {
            kind,
            len: bytes as usize / 4,
            kernel_ns: log_uniform(random, KERNEL_NS) as u64,
        }
    }
}

fn log_uniform(random: &mut SplitMix64, [least, most]: [f64; 2]) -> f64 {
    let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    least * (most / least).powf(share)
}

/// A kernel over a chunk of this size.
pub struct KernelPoint {
    pub bytes: usize,
    /// One after the other on one stream.
    pub alone_ns: u64,
    /// Each of several, on several streams.
    pub together_ns: u64,
}

impl fmt::Display for KernelPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:9.3} MiB: {:9.1} us alone, {:9.1} us each of {STREAMS}",
            self.bytes as f64 / MIB as f64,
            self.alone_ns as f64 / 1e3,
            self.together_ns as f64 / 1e3
        )
    }
}

/// Device and memory for all jobs.
pub struct Rig {
    pub device: Device,
    pub profile: Profile,
    pub kernels: Builtin,
    pub input: PinnedBuf<u32>,
    pub output: PinnedBuf<u32>,
    pub on_device: DeviceBuf<u32>,
    pub streams: Vec<Stream>,
}

impl Rig {
    pub fn new(device: &Device, profile: Profile) -> Result<Self> {
        let len = BYTES[1] / 4;
        let mut input = device.pinned(len)?;
        for (word, number) in input.iter_mut().zip(0u32..) {
            *word = number.wrapping_mul(0x9e37_79b9);
        }
        let streams = (0..STREAMS).map(|_| device.stream());
        let mut rig = Self {
            device: device.clone(),
            profile,
            kernels: Builtin::load(device)?,
            input,
            output: device.pinned(len)?,
            on_device: device.alloc(len)?,
            streams: streams.collect::<Result<_>>()?,
        };
        rig.output.fill(1);
        Ok(rig)
    }

    /// Rounds with which the kernel takes about as long as drawn.
    pub fn rounds_for(&mut self, drawn: &DrawnJob) -> anyhow::Result<u32> {
        let target_ns = drawn.kernel_ns as f64;
        let (mut rounds, mut ns) = (1u32, self.kernel_ns(drawn.kind, 1, drawn.len, 1)? as f64);
        let (mut before, mut before_ns) = (0, 0.0);
        for _ in 0..12 {
            if (ns / target_ns - 1.0).abs() < 0.05 || (rounds == 1 && ns > target_ns) {
                break;
            }
            let per_round_ns = (ns - before_ns) / (f64::from(rounds) - f64::from(before));
            let wanted = f64::from(rounds) + (target_ns - ns) / per_round_ns.max(1e-3);
            // Far from the target the first rounds say little.
            let wanted = wanted.clamp(1.0, f64::from(rounds) * 16.0).round() as u32;
            if wanted == rounds {
                break;
            }
            (before, before_ns) = (rounds, ns);
            rounds = wanted;
            ns = self.kernel_ns(drawn.kind, rounds, drawn.len, 1)? as f64;
        }
        Ok(rounds)
    }

    /// The job for the model, and the times of its kernel, largest chunk first.
    pub fn job(
        &mut self,
        drawn: &DrawnJob,
        rounds: u32,
    ) -> anyhow::Result<(Job, Vec<KernelPoint>)> {
        let mut points = Vec::new();
        let mut len = drawn.len;
        while len * 4 >= SMALLEST || points.is_empty() {
            let alone_ns = self.kernel_ns(drawn.kind, rounds, len, 1)?;
            let together_ns = match len * STREAMS <= self.on_device.len() {
                true => self.kernel_ns(drawn.kind, rounds, len, STREAMS)?,
                false => alone_ns,
            };
            points.push(KernelPoint {
                bytes: len * 4,
                alone_ns,
                together_ns,
            });
            len /= 2;
        }
        let bytes = drawn.len as u64 * 4;
        let job = Job {
            bytes_in: bytes,
            bytes_out: bytes,
            kernel: self.kernel_time(&points),
            input: Memory::Pinned,
            output: Memory::Pinned,
            host_ns_per_chunk: 0,
        };
        Ok((job, points))
    }

    /// What the model makes of these times.
    fn kernel_time(&self, points: &[KernelPoint]) -> KernelTime {
        let launch_ns = self.profile.kernel.launch_ns;
        let whole_ns = points[0].alone_ns.saturating_sub(launch_ns);
        KernelTime {
            ns_per_gib: ((u128::from(whole_ns) << 30) / points[0].bytes as u128) as u64,
            ..KernelTime::default()
        }
    }

    /// Time of each of several kernels over `len` elements, on so many streams.
    pub fn kernel_ns(
        &mut self,
        kind: KernelKind,
        rounds: u32,
        len: usize,
        streams: usize,
    ) -> anyhow::Result<u64> {
        let once_ns = self.kernels_ns(kind, rounds, len, streams, streams)? / streams as u64;
        // Several, so that starting and ending hardly count.
        let count = (1_000_000 / once_ns.max(1)).clamp(1, 64) as usize * streams;
        let times = (0..5).map(|_| self.kernels_ns(kind, rounds, len, streams, count));
        Ok(median(times.collect::<Result<Vec<u64>>>()?) / count as u64)
    }

    fn kernels_ns(
        &mut self,
        kind: KernelKind,
        rounds: u32,
        len: usize,
        streams: usize,
        count: usize,
    ) -> Result<u64> {
        let start = self.device.event_with_timing()?;
        let end = self.device.event_with_timing()?;
        let first = &self.streams[0];
        // Until all are submitted.
        self.kernels.spin(first, 20_000 + count as u64 * 8_000)?;
        first.record(&start)?;
        for stream in &self.streams[1..streams] {
            stream.wait(&start)?;
        }
        for turn in 0..count {
            let stream = turn % streams;
            let data: DeviceSliceMut<'_, u32> =
                self.on_device.range_mut(stream * len..(stream + 1) * len);
            kind.launch(&self.kernels, &self.streams[stream], rounds, data)?;
        }
        for stream in &self.streams[1..streams] {
            let done = self.device.event()?;
            stream.record(&done)?;
            first.wait(&done)?;
        }
        first.record(&end)?;
        first.synchronize()?;
        Ok(u64::try_from(start.elapsed_ns(&end)?).unwrap_or(0))
    }
}
