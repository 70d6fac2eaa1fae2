//! The express lane between host memory and the GPU.
//!
//! Ordinary memory reaches a GPU at 7 to 14 GB/s on a link that carries 55. Here it goes at nearly the
//! link's speed, in one line:
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! use pinlane::Device;
//!
//! let device = Device::sim("h200")?; // a simulated GPU; `Device::cuda(0)?` opens a real one
//! let stream = device.stream()?;
//!
//! let weights = vec![0.5f32; 1 << 20]; // any memory
//! let mut on_device = device.alloc::<f32>(weights.len())?;
//! stream.copy_to_device(&weights, &mut on_device)?; // returns when `weights` may be reused
//! assert_eq!(stream.copy_to_vec(&on_device)?, weights);
//! # Ok(())
//! # }
//! ```
//!
//! # Pinned memory
//!
//! Asynchronous copies need pinned (page-locked) memory, and are easy to get wrong: a buffer that is
//! refilled while its copy is in flight is silently corrupt. Here that does not compile, because the
//! transfer owns the buffer until the copy is done:
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! # let device = pinlane::Device::sim("h200")?;
//! # let stream = device.stream()?;
//! let mut on_device = device.alloc::<f32>(1024)?;
//! let mut buffer = device.pinned::<f32>(1024)?; // used like a slice
//! buffer.fill(1.5);
//!
//! let transfer = stream.upload(buffer, &mut on_device)?; // returns at once
//! let buffer = transfer.wait()?; // or `.await`; the buffer is ours again
//! # drop(buffer);
//! # Ok(())
//! # }
//! ```
//!
//! - An asynchronous copy takes pinned or registered memory, never a plain slice.
//! - It owns the buffer ([`Transfer`]) and returns it when it is done, on failure too; or it borrows it
//!   inside a closure that ends after the copy ([`Device::scope`]).
//! - What was allocated is freed, what was registered is unregistered, once, after its last use.
//! - A [`DeviceBuf`] knows who reads and writes it, so streams wait for each other where they must.
//! - A [`Budget`] caps pinned memory, so that pinning never starves the machine.
//!
//! # Pipelines
//!
//! [`pipeline::Pipeline`] moves chunks to the device, through a kernel and back, all at once:
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! # let device = pinlane::Device::sim("h200")?;
//! use pinlane::Builtin;
//! use pinlane::pipeline::{Pipeline, PipelineConfig};
//!
//! let kernels = Builtin::load(&device)?;
//! let (numbers, mut results) = (vec![40u32; 1_000_000], vec![0u32; 1_000_000]);
//! let pipeline = Pipeline::new(&device, PipelineConfig::default())?;
//! pipeline.run_in_place(&numbers[..], &mut results[..], |stage, chunk| {
//!     kernels.add(stage.stream(), 2, chunk)
//! })?;
//! assert_eq!(results, vec![42; 1_000_000]);
//! # Ok(())
//! # }
//! ```
//!
//! # Loading
//!
//! `load::Weights` brings safetensors and npy files to the device, `load::Loader` the batches of a
//! dataset, read ahead by several threads.
//!
//! # Crate features
//!
//! | feature | default | enables |
//! |---|---|---|
//! | `cuda` | yes | NVIDIA GPUs: [`Device::cuda`]. The driver is loaded at run time; no toolkit is needed |
//! | `sim` | | simulated GPUs: [`Device::sim`] |
//! | `load` | yes | weights and datasets from files: `load` |
//! | `mmap` | yes | registering memory-mapped files (memmap2) |
//! | `record` | | recording what streams do, and drawing it: `record` |
//! | `cudarc` | | sharing memory and streams with the cudarc crate: `interop::cudarc` |
//!
//! # Layout
//!
//! ```text
//!   Device ── Stream ── Transfer<B> ── your buffer again
//!      │         └───── copy_to_device, launch, waits
//!      ├── PinnedBuf  Registered  WriteCombinedBuf  MappedBuf     host memory
//!      ├── PinnedPool ── PoolBuf                                  the same, reused
//!      ├── Budget                                                 how much may be pinned
//!      ├── DeviceBuf  DeviceSlice  DeviceSliceMut                 device memory
//!      ├── pipeline::Pipeline                                     overlapped copy, kernel, copy
//!      └── load::Weights  load::Loader                            files to the device
//! ```
//!
//! Every call returns, or converts with `?` into, one [`Error`]; [`Error::kind`] tells what to do.

#[doc(inline)]
pub use pinlane_core::*;

#[doc(inline)]
pub use pinlane_calibrate as calibrate;
#[cfg(feature = "cuda")]
#[doc(inline)]
pub use pinlane_cuda as cuda;
#[doc(inline)]
pub use pinlane_driver as driver;
#[cfg(feature = "load")]
#[doc(inline)]
pub use pinlane_load as load;
#[doc(inline)]
pub use pinlane_model as model;
#[doc(inline)]
pub use pinlane_pipeline as pipeline;
#[cfg(feature = "record")]
#[doc(inline)]
pub use pinlane_record as record;
#[cfg(feature = "sim")]
#[doc(inline)]
pub use pinlane_sim as sim;
