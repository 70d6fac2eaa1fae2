//! Pipelines: chunks to the device, through a kernel and back, all three at once.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = pinlane::Device::sim("pcie3-x16")?;
//! use pinlane::pipeline::{Pipeline, PipelineConfig};
//!
//! let kernels = pinlane::Builtin::load(&device)?;
//! let numbers = vec![40u32; 1_000_000]; // any memory, of any size
//! let mut results = vec![0u32; 1_000_000];
//! let pipeline = Pipeline::new(&device, PipelineConfig::default())?;
//! pipeline.run_in_place(&numbers[..], &mut results[..], |stage, data| {
//!     kernels.add(stage.stream(), 2, data)
//! })?;
//! assert_eq!(results, vec![42; 1_000_000]);
//! # Ok(())
//! # }
//! ```
//!
//! The next batch is prepared while the GPU works on this one, without a race:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = pinlane::Device::sim("pcie3-x16")?;
//! # use pinlane::pipeline::{Input, Output, Pipeline, PipelineConfig};
//! # let kernels = pinlane::Builtin::load(&device)?;
//! # let mut sums = vec![];
//! # let prepare = |number: u32| vec![number; 1000];
//! let pipeline = Pipeline::new(&device, PipelineConfig::default())?;
//! let batches = Input::batches((0..10u32).map(|number| prepare(number)));
//! pipeline.run_in_place(batches, Output::each(|done: &[u32]| Ok(sums.push(done.iter().sum::<u32>()))),
//!     |stage, data| kernels.add(stage.stream(), 1, data))?;
//! # assert_eq!(sums, (1..=10).map(|value| value * 1000).collect::<Vec<u32>>());
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   lib          Pipeline: streams and buffers, kept between runs
//!   input        what chunks come from: any memory, a reader, batches; output: where results go
//!   run          sets up a run; chunk_loop: uploads, launches and downloads its chunks
//!     stage      a chunk, and what its kernel is given
//!     source     uploads a chunk of an input
//!     target     downloads a chunk of results; drain: the thread that hands them to the host
//!   buffers      device and pinned buffers for the next run
//!   record       when each stage of each chunk ran on the device
//! ```
//!
//! Device buffers track their uses, so chunks that share one wait for each other where they must. Nothing
//! here repeats that.

mod buffers;
mod chunk_loop;
mod config;
mod drain;
mod error;
mod input;
mod output;
mod record;
mod run;
mod source;
mod stage;
mod target;

pub use config::{PipelineConfig, PipelineOrder};
pub use error::{Cause, PipelineError, StageKind};
pub use input::{Input, Inputs, IntoInput};
pub use output::Output;
pub use record::StageSpan;
pub use stage::{RunSummary, Stage};

use bytemuck::Pod;

use buffers::BufferCache;
use pinlane_core::{Device, DeviceSlice, DeviceSliceMut, Result, Stream};
use stage::KernelCall;

/// A pipeline with its streams and buffers. Reusable, also by several runs at the same
/// time.
#[derive(Debug)]
pub struct Pipeline {
    device: Device,
    config: PipelineConfig,
    streams: Vec<Stream>,
    /// Uploads that occupy the host, so that they never wait behind a kernel of an earlier chunk.
    upload_stream: Stream,
    /// Downloads that occupy the host.
    download_stream: Stream,
    cache: BufferCache,
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

    /// Runs `inputs` through `kernel` and stores the results in `output`. Returns when all results are
    /// there.
    ///
    /// `inputs` is one [`Input`] or a tuple of up to four with the same number of items. `kernel` is called
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
        if source.item_bytes != spec.item_bytes {
            return Err(PipelineError::setup(pinlane_core::Error::InvalidConfig {
                field: "output",
                reason: "items as wide as the input's, since the kernel works in place",
            }));
        }
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
