//! The CUDA driver behind Pinlane's driver trait.
//!
//! ```text
//!   Cuda            device_list.rs   finds libcuda, lists devices, opens one
//!    |
//!   CudaDevice      open_device.rs   an open device; driver.rs implements the trait with the methods
//!    |                               in device_memory, host_memory, stream, event, copy, kernel
//!   DeviceContext   context.rs       the device's primary context, created at first use, or another
//!    |                               library's; made current for each call
//!   Library         library.rs       libcuda, initialised; symbol_table.rs is the table of its calls
//! ```
//!
//! **Nothing is linked.** libcuda is opened at run time, under the names that cudarc tries, so that
//! cudarc in the same process uses the same library. A missing library, GPU or symbol is a typed
//! error, never a panic.
//!
//! **cudarc's types, our own calls.** cudarc's `sys` resolves a call when it is first made and
//! panics if it is missing. Its result is a Rust enum, so an unknown code from a newer driver would
//! be undefined behaviour. The table in `symbol_table.rs` resolves every call at load and reads results as
//! plain numbers; the compiler checks each signature against cudarc's.
//!
//! **A guest in the process.** Opening a device creates nothing on it. A call that needs the context
//! makes it current and restores another user's context afterwards. A forked child gets
//! [`Forked`](pinlane_driver::ErrorKind::Forked) instead of a hang.
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
//!     Err(error) => println!("no GPU: {error}"),
//! }
//! # Ok::<(), pinlane_driver::Error>(())
//! ```

mod context;
mod copy;
mod device_list;
mod device_memory;
mod driver;
mod error;
mod event;
mod fork;
mod handles;
mod host_memory;
mod info;
mod kernel;
mod library;
mod lock;
mod open_device;
mod registered_ranges;
mod stream;
mod symbol_table;

pub use device_list::Cuda;
