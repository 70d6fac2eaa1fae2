//! A pipeline and its runs.

use bytemuck::Pod;

use pinlane_core::{Device, DeviceSlice, DeviceSliceMut, Result, Stream};

use super::buffer_cache::BufferCache;
use super::config::PipelineConfig;
use super::error::PipelineError;
use super::input::{Inputs, IntoInput};
use super::output::Output;
use super::source::ChunkSource;
use super::stage::{KernelCall, RunSummary, Stage};
use super::target::TargetSpec;

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
        let (flow, ()) = self.run_meanwhile(inputs, output, kernel, || ())?;
        Ok(flow)
    }

    /// Like [`run`](Self::run), but also calls `work` on this thread once everything is submitted, and returns
    /// its result. With pinned input and output that is almost at once. If the host has to read or stage the
    /// inputs it is late: use [`beside`](Self::beside) then.
    ///
    /// # Errors
    /// See [`run`](Self::run). `work` is not called if submitting failed.
    pub fn run_meanwhile<'a, I: Inputs<'a>, O: Pod, R>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        mut kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(RunSummary, R), PipelineError> {
        let mut apart =
            |stage: &Stage<'_>, inputs: &[DeviceSlice<'_, u8>], output: DeviceSliceMut<'_, u8>| {
                kernel(stage, I::slices(inputs), output.cast())
            };
        let middle = KernelCall::OutOfPlace(&mut apart);
        let (sources, spec) = (inputs.into_sources()?, output.into().into_spec()?);
        self.flow(sources, middle, spec, work)
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
        let (flow, ()) = self.run_in_place_meanwhile(input, output, kernel, || ())?;
        Ok(flow)
    }

    /// Like [`run_in_place`](Self::run_in_place), with `work` for the host as in [`run_meanwhile`](Self::run_meanwhile).
    ///
    /// # Errors
    /// See [`run`](Self::run).
    pub fn run_in_place_meanwhile<'a, I: IntoInput<'a>, R>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        mut kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(RunSummary, R), PipelineError> {
        let mut in_place =
            |stage: &Stage<'_>, data: DeviceSliceMut<'_, u8>| kernel(stage, data.cast());
        let middle = KernelCall::InPlace(&mut in_place);
        let source = input.into_input().into_source()?;
        let spec = output.into().into_spec()?;
        check_in_place(&source, &spec)?;
        self.flow(vec![source], middle, spec, work)
    }

    /// Runs `work` on another thread beside `run`. Returns when both are done.
    pub fn beside<R, W: Send>(run: impl FnOnce() -> R, work: impl FnOnce() -> W + Send) -> (R, W) {
        std::thread::scope(|scope| {
            let work = scope.spawn(work);
            let run = run();
            let work = work.join();
            (
                run,
                work.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        })
    }

    /// Frees the buffers kept for the next run.
    pub fn trim(&self) {
        self.cache.clear();
    }
}

/// Checks that a kernel can replace its input by its results.
pub(super) fn check_in_place(source: &ChunkSource<'_>, spec: &TargetSpec<'_>) -> Result<()> {
    if source.item_bytes != spec.item_bytes {
        return Err(pinlane_core::Error::InvalidConfig {
            field: "output",
            reason: "items as wide as the input's, since the kernel works in place",
        });
    }
    Ok(())
}
