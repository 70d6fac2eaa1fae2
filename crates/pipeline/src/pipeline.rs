//! A pipeline and its runs.

use bytemuck::Pod;

use pinlane_core::{Device, DeviceSlice, DeviceSliceMut, Error, Result, Stream};

use super::buffer_cache::BufferCache;
use super::config::PipelineConfig;
use super::download::TargetSpec;
use super::error::{PipelineError, RunResult};
use super::input::{Inputs, IntoInput};
use super::kernel_call::{KernelCall, RunSummary, Stage};
use super::output::Output;
use super::upload::ChunkSource;

/// A pipeline with its streams and buffers. Reusable, also by several runs at once.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) device: Device,
    pub(super) config: PipelineConfig,
    pub(super) streams: Vec<Stream>,
    /// Uploads that occupy the host, so that they never wait behind a kernel of an earlier chunk.
    pub(super) upload_stream: Stream,
    /// Downloads that occupy the host.
    pub(super) download_stream: Stream,
    pub(super) cache: BufferCache,
}

impl Pipeline {
    /// Creates a pipeline on a device.
    pub fn new(device: &Device, config: PipelineConfig) -> Result<Self> {
        config.check()?;
        let streams = (0..config.stream_count()).map(|_| device.stream());
        Ok(Self {
            streams: streams.collect::<Result<_>>()?,
            upload_stream: device.stream()?,
            download_stream: device.stream()?,
            device: device.clone(),
            cache: BufferCache::new(device),
            config,
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// Runs `inputs` through `kernel` and stores the results in `output`, which it waits for.
    ///
    /// `inputs` is one [`Input`](super::Input) or a tuple of up to four with the same number of items. `kernel` is called
    /// for each chunk, in order, to submit work to [`Stage::stream`]; it gets the chunk of each input and
    /// the memory for its results.
    ///
    /// # Errors
    /// The first failure, with the number of its chunk. By then everything submitted has ended, all buffers
    /// are free, and the contents of the output are unspecified.
    pub fn run<'a, I: Inputs<'a>, O: Pod>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
    ) -> std::result::Result<RunSummary, PipelineError> {
        out_of_place(inputs, output, kernel, |run| self.flow(run))
    }

    /// Like [`run`](Self::run), and calls `work` on another thread from the beginning on. Returns its result when
    /// both are done.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # use pinlane::pipeline::{Pipeline, PipelineConfig};
    /// # let pipeline = Pipeline::new(&device, PipelineConfig::default())?;
    /// let (numbers, mut results) = (vec![7u32; 1_000_000], vec![0u32; 1_000_000]);
    /// let (_, sum) = pipeline.run_meanwhile(
    ///     &numbers,
    ///     &mut results,
    ///     |stage, input, output| stage.stream().copy_on_device(input, output),
    ///     || numbers.iter().sum::<u32>(),
    /// )?;
    /// assert_eq!(sum, 7_000_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`run`](Self::run). A run that fails once it has begun also waits for `work`, and drops its result.
    ///
    /// # Panics
    /// If `work` panics, when the run has ended.
    pub fn run_meanwhile<'a, I: Inputs<'a>, O: Pod, R: Send>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
        work: impl FnOnce() -> R + Send,
    ) -> std::result::Result<(RunSummary, R), PipelineError> {
        out_of_place(inputs, output, kernel, |run| {
            self.meanwhile(work, || self.flow(run))
        })
    }

    /// Like [`run`](Self::run), with a kernel that overwrites its input with its results.
    ///
    /// # Errors
    /// See [`run`](Self::run).
    pub fn run_in_place<'a, I: IntoInput<'a>>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
    ) -> std::result::Result<RunSummary, PipelineError> {
        in_place(input, output, kernel, |run| self.flow(run))
    }

    /// Like [`run_in_place`](Self::run_in_place), with `work` for the host as in [`run_meanwhile`](Self::run_meanwhile).
    ///
    /// # Errors
    /// See [`run_meanwhile`](Self::run_meanwhile).
    ///
    /// # Panics
    /// If `work` panics, when the run has ended.
    pub fn run_in_place_meanwhile<'a, I: IntoInput<'a>, R: Send>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
        work: impl FnOnce() -> R + Send,
    ) -> std::result::Result<(RunSummary, R), PipelineError> {
        in_place(input, output, kernel, |run| {
            self.meanwhile(work, || self.flow(run))
        })
    }

    /// Frees the buffers kept for the next run.
    pub fn trim(&self) {
        self.cache.clear();
    }
}

/// What a run is made of.
pub(super) struct RunParts<'k, 'a> {
    pub(super) sources: Vec<ChunkSource<'a>>,
    pub(super) kernel: KernelCall<'k>,
    pub(super) target: TargetSpec<'a>,
}

/// Passes the parts of a run with a kernel that has inputs and an output to `run`.
pub(super) fn out_of_place<'a, I: Inputs<'a>, O: Pod, T>(
    inputs: I,
    output: impl Into<Output<'a, O>>,
    mut kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
    run: impl FnOnce(RunParts<'_, 'a>) -> RunResult<T>,
) -> RunResult<T> {
    let mut apart =
        |stage: &Stage<'_>, inputs: &[DeviceSlice<'_, u8>], output: DeviceSliceMut<'_, u8>| {
            kernel(stage, I::slices(inputs), output.cast())
        };
    let (sources, target) = (inputs.into_sources()?, output.into().into_spec()?);
    check_lengths(&sources, &target)?;
    run(RunParts {
        sources,
        kernel: KernelCall::OutOfPlace(&mut apart),
        target,
    })
}

/// The same for a kernel that works in place.
pub(super) fn in_place<'a, I: IntoInput<'a>, T>(
    input: I,
    output: impl Into<Output<'a, I::Item>>,
    mut kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
    run: impl FnOnce(RunParts<'_, 'a>) -> RunResult<T>,
) -> RunResult<T> {
    let mut in_place = |stage: &Stage<'_>, data: DeviceSliceMut<'_, u8>| kernel(stage, data.cast());
    let source = input.into_input().into_source()?;
    let target = output.into().into_spec()?;
    if source.item_bytes != target.item_bytes {
        return Err(PipelineError::setup(Error::InvalidConfig {
            field: "output",
            reason: "items as wide as the input's, since the kernel works in place",
        }));
    }
    let sources = vec![source];
    check_lengths(&sources, &target)?;
    run(RunParts {
        sources,
        kernel: KernelCall::InPlace(&mut in_place),
        target,
    })
}

/// Checks that known lengths agree.
fn check_lengths(sources: &[ChunkSource<'_>], target: &TargetSpec<'_>) -> Result<()> {
    let items = sources.iter().find_map(ChunkSource::known_items);
    let room = target.known_bytes().map(|bytes| bytes / target.item_bytes);
    match (items, room) {
        (Some(source_len), Some(target_len)) if source_len != target_len => {
            Err(Error::LengthMismatch {
                source_len,
                target_len,
            })
        }
        _ => Ok(()),
    }
}
