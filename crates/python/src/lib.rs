//! The native part of the Python package `pinlane`.
//!
//! ```text
//!   device         Device: opened once a process, by name
//!   stream         Stream, Event; streams of other libraries
//!   host_array     arrays of others in host memory: NumPy, torch, buffers, DLPack
//!   pinned         pinned memory for NumPy arrays; arrays page-locked in place
//!   device_array   DeviceArray: device memory with a shape
//!   foreign_device_array   device memory of others: torch, CuPy, JAX, Numba
//!   copies         to_device, to_host, upload_many
//!   kernel         compile, launch: CUDA C at run time
//!   kernel_scalar  numbers as arguments of kernels
//!   dataset        samples for the loader: arrays, files, archives, Python objects
//!   loader         the loader behind DataLoader
//!   batch_memory   the memory of a loader's batch
//!   timeline       Timeline: records and draws what a device does
//!   dlpack         memory from and for other libraries
//!   dtype          element types, and their names elsewhere
//!   weights        safetensors files: arrays on devices and hosts
//!   fork           refuses forked children
//!   errors         Rust errors as Python exceptions
//!   interruptible_wait     waits that Ctrl-C ends
//! ```
//!
//! What needs no speed and no memory is Python: `crates/python/python/pinlane`. Python objects are touched with
//! the interpreter attached; copies and waits run detached from it.

mod batch_memory;
mod copies;
mod dataset;
mod device;
mod device_array;
mod dlpack;
mod dtype;
mod errors;
mod foreign_device_array;
mod fork;
mod host_array;
mod interruptible_wait;
mod kernel;
mod kernel_scalar;
mod loader;
mod pinned;
mod stream;
mod timeline;
mod weights;

use pyo3::prelude::*;

/// The native part of the package `pinlane`.
#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use copies::{copy_into, to_device, to_host, upload_many};
    #[pymodule_export]
    use dataset::NativeDataset;
    #[pymodule_export]
    use device::{Device, device_names, open_device, pinned_bytes, pinned_limit, set_pinned_limit};
    #[pymodule_export]
    use device_array::DeviceArray;
    #[pymodule_export]
    use kernel::{Kernel, Module, compile_source, launch};
    #[pymodule_export]
    use loader::{LoaderBatch, LoaderEpoch, NativeLoader};
    #[pymodule_export]
    use pinned::{Pinned, PinnedMemory, is_pinned, pin};
    #[pymodule_export]
    use stream::{Event, Stream};
    #[pymodule_export]
    use timeline::Timeline;
    #[pymodule_export]
    use weights::{DeviceLoad, TensorFiles};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Runs the command `pinlane` with these arguments, the first of which is its name. Returns its exit status.
    #[pyfunction]
    fn run_command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| pinlane_cli::run(arguments, pinlane_cli::embedded_libraries!()))
    }
}
