//! Pipelines: chunks that flow to the device, through a kernel and back, all three at once.
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
//! Preparing the next batch while the GPU works on this one, with no race:
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
//!   Pipeline   streams and buffers, kept between runs         (this file, shelf)
//!     Input    pinned or ordinary memory, a reader, batches, device memory    (input)
//!     Output   the same, or kept on the device                                (output)
//!     flow     the loop: load a group of chunks, launch, store                (flow, config)
//!       load   how a chunk gets to the device                                 (load)
//!       store  how it comes back; a thread of its own where the host has work with it  (store, drain)
//!     Recorder which chunk was where when, by events of the device            (record)
//! ```
//!
//! Device buffers know who uses them, so chunks that share one wait for each other where they must;
//! nothing here repeats that.

mod config;
mod drain;
mod error;
mod flow;
mod input;
mod inputs;
mod load;
mod output;
mod record;
mod run;
mod shelf;
mod store;

pub use config::{Order, PipelineConfig};
pub use error::{Cause, PipelineError, StageKind};
pub use flow::{Flow, Stage};
pub use input::{Input, IntoInput};
pub use inputs::Inputs;
pub use output::Output;
pub use record::Recorded;

use bytemuck::Pod;

use flow::Middle;
use pinlane_core::{Device, DeviceSlice, DeviceSliceMut, Result, Stream};
use shelf::Shelf;

/// Streams and buffers through which data flow. May be used again and again, by one run at a time
/// or several.
#[derive(Debug)]
pub struct Pipeline {
    device: Device,
    config: PipelineConfig,
    streams: Vec<Stream>,
    /// Where inputs go that the host has work with: behind no kernel of an earlier chunk.
    forth: Stream,
    /// Where results go back that the host has work with.
    back: Stream,
    shelf: Shelf,
}

impl Pipeline {
    /// A pipeline on a device.
    pub fn new(device: &Device, config: PipelineConfig) -> Result<Self> {
        config.check()?;
        let streams = (0..config.stream_count()).map(|_| device.stream());
        Ok(Self {
            streams: streams.collect::<Result<_>>()?,
            forth: device.stream()?,
            back: device.stream()?,
            device: device.clone(),
            shelf: Shelf::new(device),
            config,
        })
    }

    /// How it was set up.
    #[must_use]
    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// Run all of `inputs` through `kernel`, and its results into `output`. Returns when they are
    /// there.
    ///
    /// `inputs` is one [`Input`] or a tuple of up to four with the same number of items. `kernel`
    /// is called for each chunk, in order, to submit work to [`Stage::stream`]; it sees the chunk's
    /// part of each input, and where its results belong.
    ///
    /// # Errors
    /// The first thing that failed, with the number of the chunk. Everything submitted is done
    /// then, all buffers are free again, and the contents of the output are unspecified.
    pub fn run<'a, I: Inputs<'a>, O: Pod>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
    ) -> std::result::Result<Flow, PipelineError> {
        let (flow, ()) = self.run_meanwhile(inputs, output, kernel, || ())?;
        Ok(flow)
    }

    /// The same, with `work` for the host: it is called when everything has been submitted, and
    /// what it returns comes back with the flow. With pinned input and output that is at once; with
    /// inputs that the host itself reads or stages it is late: see [`beside`](Self::beside).
    ///
    /// # Errors
    /// See [`run`](Self::run). Where submitting failed, `work` is not called.
    pub fn run_meanwhile<'a, I: Inputs<'a>, O: Pod, R>(
        &self,
        inputs: I,
        output: impl Into<Output<'a, O>>,
        mut kernel: impl for<'s> FnMut(&Stage<'_>, I::Slices<'s>, DeviceSliceMut<'s, O>) -> Result<()>,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(Flow, R), PipelineError> {
        let mut apart =
            |stage: &Stage<'_>, inputs: &[DeviceSlice<'_, u8>], output: DeviceSliceMut<'_, u8>| {
                kernel(stage, I::slices(inputs), output.cast())
            };
        let middle = Middle::Apart(&mut apart);
        let (feeds, sink) = (inputs.into_feeds()?, output.into().into_sink()?);
        self.flow(feeds, middle, sink, work)
    }

    /// The same with a kernel that puts its results where its input was.
    ///
    /// # Errors
    /// See [`run`](Self::run).
    pub fn run_in_place<'a, I: IntoInput<'a>>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
    ) -> std::result::Result<Flow, PipelineError> {
        let (flow, ()) = self.run_in_place_meanwhile(input, output, kernel, || ())?;
        Ok(flow)
    }

    /// The same, with `work` for the host. See [`run_meanwhile`](Self::run_meanwhile).
    ///
    /// # Errors
    /// See [`run`](Self::run).
    pub fn run_in_place_meanwhile<'a, I: IntoInput<'a>, R>(
        &self,
        input: I,
        output: impl Into<Output<'a, I::Item>>,
        mut kernel: impl FnMut(&Stage<'_>, DeviceSliceMut<'_, I::Item>) -> Result<()>,
        work: impl FnOnce() -> R,
    ) -> std::result::Result<(Flow, R), PipelineError> {
        let mut in_place =
            |stage: &Stage<'_>, data: DeviceSliceMut<'_, u8>| kernel(stage, data.cast());
        let middle = Middle::InPlace(&mut in_place);
        let feed = input.into_input().into_feed()?;
        let sink = output.into().into_sink()?;
        if feed.item_bytes != sink.item_bytes {
            return Err(PipelineError::setup(pinlane_core::Error::InvalidConfig {
                field: "output",
                reason: "items as wide as the input's, since the kernel works in place",
            }));
        }
        self.flow(vec![feed], middle, sink, work)
    }

    /// Do `work` on another thread meanwhile. Returns when both are done.
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

    /// Free the buffers that it keeps for the next run.
    pub fn trim(&self) {
        self.shelf.clear();
    }
}
