//! What every section needs.

use std::time::{Duration, Instant};

use pinlane::calibrate::calibrate;
use pinlane::model::Profile;
use pinlane::model::pipeline::{Job, KernelTime, Memory, Shape};
use pinlane::pipeline::{Pipeline, PipelineConfig};
use pinlane::{Builtin, Device, DeviceBuf, PinnedBuf, Platform, Result, Stream};

pub const MIB: usize = 1 << 20;
pub const GIB: usize = 1 << 30;

/// Elements of a small chunk.
const SMALL: usize = 2 * MIB / 4;

/// Elements of the largest job.
pub const LEN: usize = GIB / 4;

pub struct Bench {
    pub device: Device,
    pub stream: Stream,
    pub other: Stream,
    pub kernels: Builtin,
    pub profile: Profile,
    pub input: PinnedBuf<u32>,
    pub output: PinnedBuf<u32>,
    pub pageable_in: Vec<u32>,
    pub pageable_out: Vec<u32>,
    pub on_device: DeviceBuf<u32>,
}

impl Bench {
    pub fn new(platform: &dyn Platform) -> anyhow::Result<Self> {
        let device = Device::open(platform, 0)?;
        let profile = calibrated(&device)?;
        println!("{}", profile.to_toml());
        let pageable_in: Vec<u32> = (0..LEN as u32)
            .map(|i| i.wrapping_mul(0x9e37_79b9))
            .collect();
        Ok(Self {
            stream: device.stream()?,
            other: device.stream()?,
            kernels: Builtin::load(&device)?,
            profile,
            input: device.pinned_from(&pageable_in)?,
            output: device.pinned(LEN)?,
            pageable_out: vec![1; LEN],
            pageable_in,
            on_device: device.alloc(LEN)?,
            device,
        })
    }

    /// Measure the machine anew.
    pub fn calibrate(&mut self) -> anyhow::Result<()> {
        self.profile = calibrated(&self.device)?;
        Ok(())
    }

    /// The kernel alone, over so many elements: one of several, one behind the other.
    pub fn kernel_ns(&mut self, len: usize, rounds: u32) -> anyhow::Result<u64> {
        let count = (SMALL / len * 16).max(4);
        let mut times = Vec::new();
        for _ in 0..5 {
            let (start, end) = (
                self.device.event_with_timing()?,
                self.device.event_with_timing()?,
            );
            // Until all are submitted.
            self.kernels.spin(&self.stream, count as u64 * 12_000)?;
            self.stream.record(&start)?;
            for _ in 0..count {
                self.kernels
                    .churn(&self.stream, rounds, self.on_device.range_mut(..len))?;
            }
            self.stream.record(&end)?;
            self.stream.synchronize()?;
            times.push(u64::try_from(start.elapsed_ns(&end)?)? / count as u64);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    /// Rounds with which the kernel takes about so long over `len` elements.
    pub fn rounds_for(&mut self, len: usize, ns: u64) -> anyhow::Result<u32> {
        let (few, many) = (self.kernel_ns(len, 2048)?, self.kernel_ns(len, 4096)?);
        let per_round = (many - few) as f64 / 2048.0;
        let beside = few as f64 - per_round * 2048.0;
        Ok(((ns as f64 - beside) / per_round).max(1.0).round() as u32)
    }

    /// What the model calls a job of the first `len` elements. What its kernel takes is known from
    /// all of them at once and from a few.
    pub fn job(&mut self, len: usize, rounds: u32, memory: Memory) -> anyhow::Result<Job> {
        let launch_ns = self.profile.kernel.launch_ns;
        let small_ns = self.kernel_ns(SMALL, rounds)?.saturating_sub(launch_ns);
        let large_ns = self.kernel_ns(len, rounds)?.saturating_sub(launch_ns);
        let (bytes, small_bytes) = (len as u64 * 4, SMALL as u64 * 4);
        let grows_ns = u128::from(large_ns.saturating_sub(small_ns));
        let ns_per_gib = u64::try_from((grows_ns << 30) / u128::from(bytes - small_bytes))?;
        let within_ns = (u128::from(ns_per_gib) * u128::from(small_bytes)) >> 30;
        Ok(Job {
            bytes_in: bytes,
            bytes_out: bytes,
            kernel: KernelTime {
                fixed_ns: small_ns.saturating_sub(u64::try_from(within_ns)?),
                ns_per_gib,
                ..KernelTime::default()
            },
            input: memory,
            output: memory,
            host_ns_per_chunk: 0,
        })
    }

    /// All elements, pinned, with a light kernel and with one of 8 ms: each job with its rounds.
    pub fn two_jobs(&mut self) -> anyhow::Result<[(Job, u32); 2]> {
        let longer = self.rounds_for(LEN, 8_000_000)?;
        Ok([
            (self.job(LEN, 1, Memory::Pinned)?, 1),
            (self.job(LEN, longer, Memory::Pinned)?, longer),
        ])
    }

    /// Time of a pipeline over the first `len` elements.
    pub fn piped(
        &mut self,
        pipeline: &Pipeline,
        len: usize,
        rounds: u32,
        memory: Memory,
    ) -> Duration {
        let kernels = &self.kernels;
        let kernel = |stage: &pinlane::pipeline::Stage<'_>,
                      data: pinlane::DeviceSliceMut<'_, u32>| {
            kernels.churn(stage.stream(), rounds, data)
        };
        let began = Instant::now();
        let ran = match memory {
            Memory::Pinned => pipeline.run_in_place(
                self.input.range(..len),
                self.output.range_mut(..len),
                kernel,
            ),
            _ => pipeline.run_in_place(
                &self.pageable_in[..len],
                &mut self.pageable_out[..len],
                kernel,
            ),
        };
        ran.expect("a pipeline that works");
        began.elapsed()
    }

    /// The median of some runs of a shape, after one that is not counted.
    pub fn measure(&mut self, job: &Job, rounds: u32, shape: &Shape) -> Result<Duration> {
        let pipeline = Pipeline::new(
            &self.device,
            PipelineConfig::planned(shape, size_of::<u32>())?,
        )?;
        let len = (job.bytes_in / 4) as usize;
        self.piped(&pipeline, len, rounds, job.input);
        let times = (0..3).map(|_| self.piped(&pipeline, len, rounds, job.input));
        Ok(median(times.collect()))
    }
}

fn calibrated(device: &Device) -> anyhow::Result<Profile> {
    let began = Instant::now();
    let profile = calibrate(device, &|| began.elapsed().as_nanos() as u64)?;
    println!("calibrated in {:.1} s", began.elapsed().as_secs_f64());
    Ok(profile)
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn gb_per_s(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e9
}
