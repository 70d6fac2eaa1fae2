//! The CUDA driver behind Pinlane's driver trait.
//!
//! ```text
//!   Cuda        platform.rs   finds libcuda, lists devices, opens one
//!    |
//!   CudaDevice  device.rs     one opened device; driver.rs forwards the trait to
//!    |                        memory, host, stream, event, copy, kernel
//!   Primary     context.rs    the device's primary context: made at first use, current where used
//!    |
//!   Library     library.rs    libcuda, found and initialised; calls.rs is the table of its calls
//! ```
//!
//! **Nothing is linked.** libcuda is opened at run time, under the names that cudarc tries, so
//! that cudarc in the same process uses the same library. Its absence, or that of a GPU or of a
//! call, is a typed error and never a panic.
//!
//! **Types from cudarc, calls of our own.** cudarc's `sys` resolves a call when it is first made
//! and panics when it is missing, and its result is a Rust enum, which a code from a newer driver
//! would make undefined behaviour. So the table in `calls.rs` resolves every call at load and
//! reads results as plain numbers; the compiler checks each signature against cudarc's.
//!
//! **A guest in the process.** Opening a device creates nothing on it. A call that needs the
//! context makes it current, and puts back the context of another user that it found there. A
//! forked child gets [`Forked`](pinlane_driver::ErrorKind::Forked) instead of a hang.
//!
//! All FFI of Pinlane is in this crate.
//!
//! ```
//! use pinlane_driver::Platform;
//!
//! match pinlane_cuda::Cuda::load() {
//!     Ok(cuda) => {
//!         for device in cuda.devices()? {
//!             println!("{}: {}", device.ordinal, device.name);
//!         }
//!     }
//!     Err(error) => println!("no GPU here: {error}"),
//! }
//! # Ok::<(), pinlane_driver::Error>(())
//! ```

mod calls;
mod context;
mod copy;
mod device;
mod driver;
mod error;
mod event;
mod fork;
mod host;
mod info;
mod kernel;
mod library;
mod memory;
mod platform;
mod registry;
mod stream;

pub use platform::Cuda;
