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
//!   pipeline      Pipeline: streams and buffers, kept between runs
//!   input         what chunks come from: any memory, a reader, batches; output: where results go
//!   run           sets up a run; chunk_loop: uploads, launches and downloads its chunks
//!     kernel_call a chunk, and what its kernel is given
//!     upload      uploads a chunk of an input
//!     download    downloads a chunk of results; drain_thread: the thread that hands them to the host
//!   buffer_cache  device and pinned buffers for the next run
//!   stage_recorder    when each stage of each chunk ran on the device
//!   planned_pipeline  PlannedPipeline: measures its kernel in its first chunks and plans the rest
//!   measure_kernel    how long a kernel takes, for the planner
//! ```
//!
//! Device buffers track their uses, so chunks that share one wait for each other where they must. Nothing
//! here repeats that.

mod buffer_cache;
mod chunk_loop;
mod config;
mod download;
mod drain_thread;
mod error;
mod input;
mod kernel_call;
mod measure_kernel;
mod output;
mod pipeline;
mod planned_pipeline;
mod run;
mod stage_recorder;
mod upload;

pub use config::{PipelineConfig, PipelineOrder};
pub use error::{Cause, PipelineError, StageKind};
pub use input::{Input, Inputs, IntoInput};
pub use kernel_call::{RunSummary, Stage};
pub use measure_kernel::measure_kernel;
pub use output::Output;
pub use pipeline::Pipeline;
pub use planned_pipeline::PlannedPipeline;
pub use stage_recorder::StageSpan;
