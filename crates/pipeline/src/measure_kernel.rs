//! Measures a kernel for the planner.

use std::ops::Range;

use pinlane_core::{Builtin, Device, Error, Event, Result, Stream};
use pinlane_model::pipeline::KernelTime;
use pinlane_model::{Profile, median};

/// Smallest chunk that is measured; the planner considers few that are smaller.
const SMALLEST_BYTES: usize = 128 << 10;

/// Streams on which kernels run together.
const STREAMS: usize = 4;

/// Kernels are repeated for about this long, so that starting and ending hardly count.
const REPEAT_NS: u64 = 1_000_000;
const REPEAT_MAX: u64 = 16;

/// Samples of each median. A simulated device repeats exactly.
const SAMPLES: usize = 3;

/// How long the device is kept busy for each launch, so that all are submitted before the first starts.
const HEAD_START_NS: u64 = 8_000;

/// Measures how long a kernel takes on chunks of different sizes, alone and beside others, for a
/// [`Job`](pinlane_model::pipeline::Job) of the planner.
///
/// `launch` launches the kernel on a range of the input's items on a stream; ranges lie in `0..items`, and
/// those on different streams do not overlap. An item has `item_bytes` bytes of input. The kernel runs some
/// dozen times, over ranges from all items down to 128 KiB, so `launch` must not mind that. Takes about as long
/// as 30 kernels over all items.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = pinlane::Device::sim("h200")?;
/// use pinlane::model::{Profile, pipeline, planner};
/// use pinlane::pipeline::{PipelineConfig, measure_kernel};
///
/// let profile = Profile::builtin("h200").unwrap(); // or pinlane::calibrate::calibrate
/// let kernels = pinlane::Builtin::load(&device)?;
/// let mut data = device.alloc::<u32>(4 << 20)?;
/// let kernel = measure_kernel(&device, &profile, data.len(), 4, |stream, items| {
///     kernels.round_trips(stream, 100, data.range_mut(items))
/// })?;
/// assert!(kernel.ns(1 << 20)? > 900_000); // a small chunk takes as long as a large one
///
/// let job = pipeline::Job {
///     bytes_in: 16 << 20,
///     bytes_out: 16 << 20,
///     kernel,
///     input: pipeline::Memory::Pinned,
///     output: pipeline::Memory::Pinned,
///     host_ns_per_chunk: 0,
/// };
/// let plan = planner::best(&job, &profile, &planner::Limits::default())?;
/// let config = PipelineConfig::planned(&plan.shape, 4)?;
/// # Ok(())
/// # }
/// ```
pub fn measure_kernel(
    device: &Device,
    profile: &Profile,
    items: usize,
    item_bytes: usize,
    launch: impl FnMut(&Stream, Range<usize>) -> Result<()>,
) -> Result<KernelTime> {
    if items == 0 || item_bytes == 0 {
        return Err(Error::InvalidConfig {
            field: "items",
            reason: "at least one, of at least one byte",
        });
    }
    let streams = (0..STREAMS).map(|_| device.stream());
    let mut meter = KernelMeter {
        device,
        kernels: Builtin::load(device)?,
        streams: streams.collect::<Result<_>>()?,
        launch_ns: profile.kernel.launch_ns,
        launch,
    };
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let mut len = items;
    while len > 0 && (len == items || len.saturating_mul(item_bytes) >= SMALLEST_BYTES) {
        let bytes = (len as u64).saturating_mul(item_bytes as u64);
        alone.push((bytes, meter.ns(len, 1)?));
        if len <= items / STREAMS {
            together.push((bytes, meter.ns(len, STREAMS)?));
        }
        len = next_len(len);
    }
    Ok(KernelTime::fit(&alone, (STREAMS as u32, &together)))
}

/// The next smaller size. Not half: kernels take as long for 7 as for 8 blocks on each multiprocessor, and sizes
/// that are all just below or just above such a step would hide it.
fn next_len(len: usize) -> usize {
    len / 8 * 5 + len % 8 * 5 / 8
}

struct KernelMeter<'a, L> {
    device: &'a Device,
    kernels: Builtin,
    streams: Vec<Stream>,
    launch_ns: u64,
    launch: L,
}

impl<L: FnMut(&Stream, Range<usize>) -> Result<()>> KernelMeter<'_, L> {
    /// Time of each kernel over `len` items, on `streams` streams, excluding its launch.
    fn ns(&mut self, len: usize, streams: usize) -> Result<u64> {
        let once_ns = self.kernels_ns(len, streams, 1)?;
        let repeat = (REPEAT_NS / once_ns.max(1)).clamp(1, REPEAT_MAX);
        let samples = match self.device.info().simulated {
            Some(_) => 1,
            None => SAMPLES,
        };
        let times = (0..samples).map(|_| self.kernels_ns(len, streams, repeat));
        let all_ns = median(times.collect::<Result<Vec<u64>>>()?);
        Ok((all_ns / (repeat * streams as u64)).saturating_sub(self.launch_ns))
    }

    /// Time of `repeat` kernels on each of `streams` streams, from the start of the first to the end of all.
    fn kernels_ns(&mut self, len: usize, streams: usize, repeat: u64) -> Result<u64> {
        let [start, end] = [self.timing()?, self.timing()?];
        let first = &self.streams[0];
        let launches = repeat * streams as u64;
        let head_start_ns = HEAD_START_NS * (launches + streams as u64);
        self.kernels.spin(first, head_start_ns)?;
        first.record(&start)?;
        let others = &self.streams[1..streams];
        others.iter().try_for_each(|other| other.wait(&start))?;
        for _ in 0..repeat {
            for (index, stream) in self.streams[..streams].iter().enumerate() {
                (self.launch)(stream, index * len..(index + 1) * len)?;
            }
        }
        for other in others {
            let done = self.device.event()?;
            other.record(&done)?;
            first.wait(&done)?;
        }
        first.record(&end)?;
        first.synchronize()?;
        Ok(u64::try_from(start.elapsed_ns(&end)?).unwrap_or(0))
    }

    fn timing(&self) -> Result<Event> {
        self.device.event_with_timing()
    }
}
