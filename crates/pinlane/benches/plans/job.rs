//! Jobs drawn at random, and what the model is told about them.

use pinlane::model::pipeline::{Job, Memory};
use pinlane::model::{Profile, SplitMix64};
use pinlane::pipeline::measure_kernel;
use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Result, Stream};

use crate::kernel::KernelKind;

pub const MIB: usize = 1 << 20;

/// Bytes of the smallest and the largest job.
const BYTES: [usize; 2] = [4 * MIB, 2048 * MIB];

/// Shortest and longest kernel.
const KERNEL_NS: [f64; 2] = [50e3, 30e6];

/// Bytes of the largest job on a simulated device, whose memory is real.
const SIMULATED_BYTES: usize = 64 * MIB;

/// A job as it was drawn.
pub struct DrawnJob {
    pub kind: KernelKind,
    /// Elements.
    pub len: usize,
    /// What the kernel should take over all of them.
    pub kernel_ns: u64,
}

impl DrawnJob {
    /// Draws a job of at most `len` elements.
    pub fn draw(random: &mut SplitMix64, len: usize) -> Self {
        let kind = *random.pick(&KernelKind::ALL);
        let bytes = log_uniform(random, [BYTES[0], len * 4].map(|bytes| bytes as f64));
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

/// Device and memory for all jobs.
pub struct Rig {
    pub device: Device,
    pub profile: Profile,
    pub kernels: Builtin,
    pub input: PinnedBuf<u32>,
    pub output: PinnedBuf<u32>,
    pub on_device: DeviceBuf<u32>,
    pub stream: Stream,
    /// The host's time in nanoseconds.
    pub clock: Box<dyn Fn() -> u64>,
}

impl Rig {
    pub fn new(device: &Device, profile: Profile, clock: Box<dyn Fn() -> u64>) -> Result<Self> {
        let len = match device.info().simulated {
            Some(_) => SIMULATED_BYTES / 4,
            None => BYTES[1] / 4,
        };
        let mut input = device.pinned(len)?;
        for (word, number) in input.iter_mut().zip(0u32..) {
            *word = number.wrapping_mul(0x9e37_79b9);
        }
        let mut rig = Self {
            device: device.clone(),
            profile,
            kernels: Builtin::load(device)?,
            input,
            output: device.pinned(len)?,
            on_device: device.alloc(len)?,
            stream: device.stream()?,
            clock,
        };
        rig.output.fill(1);
        Ok(rig)
    }

    /// Rounds with which the kernel takes about as long as drawn.
    pub fn rounds_for(&mut self, drawn: &DrawnJob) -> anyhow::Result<u32> {
        let target_ns = drawn.kernel_ns as f64;
        let (mut rounds, mut ns) = (1u32, self.kernel_ns(drawn.kind, 1, drawn.len)? as f64);
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
            ns = self.kernel_ns(drawn.kind, rounds, drawn.len)? as f64;
        }
        Ok(rounds)
    }

    /// The job for the model.
    pub fn job(&mut self, drawn: &DrawnJob, rounds: u32) -> anyhow::Result<Job> {
        let (kernels, on_device) = (&self.kernels, &mut self.on_device);
        let (device, profile) = (&self.device, &self.profile);
        let kernel = measure_kernel(device, profile, drawn.len, 4, |stream, items| {
            let data = on_device.range_mut(items);
            drawn.kind.launch(kernels, stream, rounds, data)
        })?;
        let bytes = drawn.len as u64 * 4;
        Ok(Job {
            bytes_in: bytes,
            bytes_out: bytes,
            kernel,
            input: Memory::Pinned,
            output: Memory::Pinned,
            host_ns_per_chunk: 0,
        })
    }

    /// Time of the kernel over `len` elements, the shortest of some.
    fn kernel_ns(&mut self, kind: KernelKind, rounds: u32, len: usize) -> anyhow::Result<u64> {
        let mut least_ns = u64::MAX;
        for _ in 0..3 {
            let start = self.device.event_with_timing()?;
            let end = self.device.event_with_timing()?;
            self.stream.record(&start)?;
            let data = self.on_device.range_mut(..len);
            kind.launch(&self.kernels, &self.stream, rounds, data)?;
            self.stream.record(&end)?;
            self.stream.synchronize()?;
            least_ns = least_ns.min(u64::try_from(start.elapsed_ns(&end)?)?);
        }
        Ok(least_ns)
    }
}
