//! A pipeline that measures its kernel in its first chunks and plans the rest.

use std::sync::{Arc, Mutex};

use bytemuck::Pod;

use super::config::PipelineConfig;
use super::download::TargetSpec;
use super::error::{PipelineError, RunResult, StageKind};
use super::input::{Inputs, IntoInput};
use super::kernel_call::{Chunk, KernelCall, RunSummary, Stage};
use super::output::Output;
use super::pipeline::{Pipeline, RunParts, in_place, out_of_place};
use super::upload::ChunkSource;
use pinlane_core::internal::lock;
use pinlane_core::{Device, DeviceSlice, DeviceSliceMut, Result};
use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder};
use pinlane_model::planner::{Limits, best};

/// Bytes of the first chunk that is measured. The next ones are larger: not by a power of two, see
/// [`measure_kernel`](super::measure_kernel).
const FIRST_BYTES: usize = 128 << 10;
const GROWTH: usize = 3;

/// At most this part of the input is measured.
const MEASURED_PART: usize = 4;

/// A pipeline that chooses its own shape. The first run measures the kernel in its first chunks, up to a quarter
/// of the input, and plans the rest with that; later runs are planned as a whole. Whoever knows the kernel's times
/// passes them ([`with_kernel`](Self::with_kernel)), and nothing is measured.
///
/// Every chunk runs once, in order, and results are those of any other [`Pipeline`]. It serves one kernel: times
/// of one say nothing about another. Inputs and outputs of unknown length (readers, batches, `Output::each`) run as
/// by default.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = pinlane::Device::sim("h200")?;
/// use pinlane::model::Profile;
/// use pinlane::pipeline::PlannedPipeline;
///
/// let profile = Profile::builtin("h200").unwrap(); // or pinlane::calibrate::calibrate
/// let kernels = pinlane::Builtin::load(&device)?;
/// let input = device.pinned_from(&vec![40u32; 1_000_000])?;
/// let mut output = device.pinned::<u32>(1_000_000)?;
/// let pipeline = PlannedPipeline::new(&device, profile);
/// pipeline.run_in_place(&input, &mut output, |stage, data| {
///     kernels.add(stage.stream(), 2, data)
/// })?;
/// assert!(output.iter().all(|number| *number == 42));
/// assert!(pipeline.kernel_time().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PlannedPipeline {
    device: Device,
    profile: Profile,
    kernel: Mutex<Option<KernelTime>>,
    /// The last plan.
    planned: Mutex<Option<(Job, Arc<Pipeline>)>>,
}

/// What was done so far.
#[derive(Clone, Copy, Default)]
struct Progress {
    chunks: u64,
    items: usize,
}

impl PlannedPipeline {
    /// Creates a pipeline on a device with this profile.
    #[must_use]
    pub fn new(device: &Device, profile: Profile) -> Self {
        Self {
            device: device.clone(),
            profile,
            kernel: Mutex::default(),
            planned: Mutex::default(),
        }
    }

    /// Sets the times of the kernel, by the bytes of all inputs together.
    #[must_use]
    pub fn with_kernel(self, kernel: KernelTime) -> Self {
        *lock(&self.kernel) = Some(kernel);
        self
    }

    /// The times of the kernel, given or measured.
    #[must_use]
    pub fn kernel_time(&self) -> Option<KernelTime> {
        *lock(&self.kernel)
    }

    /// The configuration of the last plan.
    #[must_use]
    pub fn config(&self) -> Option<PipelineConfig> {
        let planned = lock(&self.planned);
        planned
            .as_ref()
            .map(|(_, pipeline)| pipeline.config().clone())
    }

    /// Like [`Pipeline::run`].
    ///
    /// # Errors
    /// See [`Pipeline::run`].
    pub fn run<'a, I: Inputs<'a>, O: Pod>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
    ) -> std::result::Result<RunSummary, PipelineError> {
        out_of_place(inputs, output, kernel, |run| self.flow(run))
    }

    /// Like [`Pipeline::run_in_place`].
    ///
    /// # Errors
    /// See [`Pipeline::run`].
    pub fn run_in_place<'a, I: IntoInput<'a>>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
    ) -> std::result::Result<RunSummary, PipelineError> {
        in_place(input, output, kernel, |run| self.flow(run))
    }

    fn flow(&self, run: RunParts<'_, '_>) -> RunResult<RunSummary> {
        let RunParts {
            mut sources,
            kernel: mut middle,
            target: mut spec,
        } = run;
        let known = sources.iter().map(ChunkSource::known_items);
        let known = known.chain([spec.known_items()]);
        let Some(all) = known.collect::<Option<Vec<usize>>>() else {
            let pipeline = Pipeline::new(&self.device, PipelineConfig::default())?;
            return pipeline.flow(RunParts {
                sources,
                kernel: middle,
                target: spec,
            });
        };
        let all = all.into_iter().min().unwrap_or(0);
        let mut done = Progress::default();
        if self.kernel_time().is_none() {
            let mut times = Vec::new();
            for items in measured_chunks(item_bytes(&sources), all) {
                let (first, rest) = split(sources, items)?;
                let (first_target, rest_target) = spec.split(items)?;
                (sources, spec) = (rest, rest_target);
                let bytes = items as u64 * item_bytes(&first) as u64;
                let ns = self.measure(first, &mut middle, first_target, items, &mut done)?;
                times.push((bytes, ns));
            }
            // The first launch of a kernel takes longer.
            if times.len() > 2 {
                let kernel = KernelTime::fit(&times[1..], (1, &[]));
                *lock(&self.kernel) = Some(kernel);
            }
        }
        let in_place = matches!(middle, KernelCall::InPlace(_));
        let pipeline = self.pipeline(&sources, &spec, all - done.items, in_place)?;
        self.go_on(&pipeline, sources, &mut middle, spec, &mut done)?;
        Ok(RunSummary {
            chunks: done.chunks,
            items: done.items as u64,
            spans: Vec::new(),
        })
    }

    /// Runs one chunk. Returns the time of its kernel, excluding the launch.
    fn measure(
        &self,
        sources: Vec<ChunkSource<'_>>,
        middle: &mut KernelCall<'_>,
        spec: TargetSpec<'_>,
        items: usize,
        done: &mut Progress,
    ) -> RunResult<u64> {
        let config = PipelineConfig::default()
            .chunk_bytes(items.saturating_mul(widest(&sources, &spec)))
            .streams(1)
            .order(PipelineOrder::DepthFirst)
            .slots(1)
            .record(true);
        let pipeline = Pipeline::new(&self.device, config)?;
        let summary = self.go_on(&pipeline, sources, middle, spec, done)?;
        let kernels = summary.spans.iter();
        let kernels = kernels.filter(|span| span.stage == StageKind::Kernel);
        let ns: u64 = kernels.map(|span| span.end_ns - span.start_ns).sum();
        Ok(ns.saturating_sub(self.profile.kernel.launch_ns))
    }

    /// Runs the next items, which go on where the last run ended.
    fn go_on(
        &self,
        pipeline: &Pipeline,
        sources: Vec<ChunkSource<'_>>,
        middle: &mut KernelCall<'_>,
        spec: TargetSpec<'_>,
        done: &mut Progress,
    ) -> RunResult<RunSummary> {
        let before = *done;
        let later = |stage: &Stage<'_>| Chunk {
            number: stage.chunk.number + before.chunks,
            first_item: stage.chunk.first_item + before.items,
            items: stage.chunk.items,
        };
        let run = |kernel: KernelCall<'_>| {
            pipeline.flow(RunParts {
                sources,
                kernel,
                target: spec,
            })
        };
        let ran = match middle {
            KernelCall::InPlace(kernel) => {
                let mut shifted = |stage: &Stage<'_>, data: DeviceSliceMut<'_, u8>| {
                    let (stream, chunk) = (stage.stream, later(stage));
                    kernel(&Stage { stream, chunk }, data)
                };
                run(KernelCall::InPlace(&mut shifted))
            }
            KernelCall::OutOfPlace(kernel) => {
                let mut shifted =
                    |stage: &Stage<'_>,
                     inputs: &[DeviceSlice<'_, u8>],
                     output: DeviceSliceMut<'_, u8>| {
                        let (stream, chunk) = (stage.stream, later(stage));
                        kernel(&Stage { stream, chunk }, inputs, output)
                    };
                run(KernelCall::OutOfPlace(&mut shifted))
            }
        };
        let summary = ran.map_err(|mut error| {
            if let Some((chunk, _)) = &mut error.place {
                *chunk += before.chunks;
            }
            error
        })?;
        done.chunks += summary.chunks;
        done.items += summary.items as usize;
        Ok(summary)
    }

    /// The pipeline for `items` items; the last one if it has the same job.
    fn pipeline(
        &self,
        sources: &[ChunkSource<'_>],
        spec: &TargetSpec<'_>,
        items: usize,
        in_place: bool,
    ) -> Result<Arc<Pipeline>> {
        let room_bytes = self.device.memory_info()?.free_bytes / 2;
        let unplanned = || {
            let config = PipelineConfig::default();
            let slot_bytes = usize::try_from(room_bytes).unwrap_or(usize::MAX) / config.slots;
            let chunk_bytes = config.chunk_bytes.min(slot_bytes.max(1));
            Pipeline::new(&self.device, config.chunk_bytes(chunk_bytes)).map(Arc::new)
        };
        let Some(kernel) = self.kernel_time().filter(|_| items > 0) else {
            return unplanned();
        };
        let inputs = sources.iter().map(ChunkSource::memory);
        let in_item_bytes = item_bytes(sources);
        let job = Job {
            bytes_in: (items as u64).saturating_mul(in_item_bytes as u64),
            bytes_out: (items as u64).saturating_mul(spec.item_bytes as u64),
            kernel,
            input: self.known(
                inputs
                    .min_by_key(|memory| rank(*memory))
                    .unwrap_or(Memory::Device),
            ),
            output: self.known(spec.memory()),
            host_ns_per_chunk: 0,
        };
        if let Some((planned, pipeline)) = &*lock(&self.planned)
            && *planned == job
        {
            return Ok(Arc::clone(pipeline));
        }
        // The model has no buffers for input that is on the device. A kernel in place needs one.
        if in_place && job.input == Memory::Device {
            return unplanned();
        }
        let limits = Limits {
            device_bytes: room_bytes,
            ..Limits::default()
        };
        let Ok(plan) = best(&job, &self.profile, &limits) else {
            return unplanned();
        };
        let config = PipelineConfig::planned(&plan.shape, in_item_bytes)?;
        let chunk_items = config.chunk_bytes / in_item_bytes;
        let chunk_bytes = chunk_items.saturating_mul(widest(sources, spec));
        let pipeline = Pipeline::new(&self.device, config.chunk_bytes(chunk_bytes))?;
        let pipeline = Arc::new(pipeline);
        *lock(&self.planned) = Some((job, Arc::clone(&pipeline)));
        Ok(pipeline)
    }

    /// Without figures of the express lane, those of the driver's copies.
    fn known(&self, memory: Memory) -> Memory {
        match memory {
            Memory::Express if self.profile.express.is_none() => Memory::Pageable,
            other => other,
        }
    }
}

/// The slowest memory of several inputs comes first.
fn rank(memory: Memory) -> u32 {
    match memory {
        Memory::Express | Memory::Pageable => 0,
        Memory::Pinned => 1,
        Memory::Device => 2,
    }
}

/// Bytes of an item of all inputs together.
fn item_bytes(sources: &[ChunkSource<'_>]) -> usize {
    let widths = sources.iter().map(|source| source.item_bytes);
    widths.fold(0, usize::saturating_add).max(1)
}

/// Bytes of an item of the widest input or output.
fn widest(sources: &[ChunkSource<'_>], spec: &TargetSpec<'_>) -> usize {
    let widths = sources.iter().map(|source| source.item_bytes);
    widths.chain([spec.item_bytes]).max().unwrap_or(1)
}

/// Items of the chunks that are measured. The first size comes twice.
fn measured_chunks(item_bytes: usize, all: usize) -> Vec<usize> {
    let first = (FIRST_BYTES / item_bytes).max(1);
    let sizes = std::iter::successors(Some(first), |items| items.checked_mul(GROWTH));
    let mut left = all / MEASURED_PART;
    [first]
        .into_iter()
        .chain(sizes)
        .take_while(|items| {
            let fits = *items <= left;
            left = left.saturating_sub(*items);
            fits
        })
        .collect()
}

/// The first items of all inputs, and the others.
fn split<'a>(
    sources: Vec<ChunkSource<'a>>,
    items: usize,
) -> Result<(Vec<ChunkSource<'a>>, Vec<ChunkSource<'a>>)> {
    let parts = sources.into_iter().map(|source| source.split(items));
    Ok(parts.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}
