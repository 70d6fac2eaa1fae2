//! The simulated GPU as a shared library with libcuda's symbols.
//!
//! ```text
//!   crates/cuda      cudarc programs      cuda-bindings programs
//!        \                |                      /
//!         dlopen("libcuda.so.1"), dlsym, cuGetProcAddress
//!                         |
//!   this crate       C symbols of the CUDA driver API
//!                         |  Arc<dyn Driver>
//!   pinlane-sim      the simulated machine
//! ```
//!
//! Built as `libpinlane_simcuda.so`. Put a link to it named `libcuda.so.1` on the loader's path and
//! a driver-API program runs on the simulated GPU. Misuse of pinned memory is reported at the end.
//!
//! It exports the symbols of a CUDA 13.0 driver. A call either works, or returns
//! `CUDA_ERROR_NOT_SUPPORTED` and is listed in the report.
//!
//! Handles are looked up in tables, never dereferenced. Each exported function is a thin wrapper of
//! safe code (`export_macros`); pointers are wrapped in types that check for null (`c_pointers`).
//!
//! # Settings
//! Environment variables, read once:
//!
//! | variable | meaning |
//! |---|---|
//! | `PINLANE_SIMCUDA_PROFILE` | built-in profile or path of a TOML file; default `h200` |
//! | `PINLANE_SIMCUDA_DEVICES` | number of devices; default 1; with 0, `cuInit` finds no device |
//! | `PINLANE_SIMCUDA_VERSION` | result of `cuDriverGetVersion`, such as `11020`; default and maximum `13000` |
//! | `PINLANE_SIMCUDA_OMIT` | comma-separated names that `cuGetProcAddress` does not find (for `dlsym` see [`testing::omit`]) |
//! | `PINLANE_SIMCUDA_FAIL` | `busy`: no context can be created; `lost:N`: the GPU is lost after N calls |
//! | `PINLANE_SIMCUDA_SEED` | seed of an adversarial schedule instead of the plain one |
//! | `PINLANE_SIMCUDA_REPORT` | file for the report; without it, problems go to stderr |
//!
//! # The report
//! Written when the process ends, one entry per line:
//!
//! ```text
//! context: device 0, primary, 1 time          contexts that were created
//! misuse: double free: host_free: …           misuse that the simulator found
//! leak: pinned memory leaked: host_alloc: …   what was not released
//! unsupported: cuGraphCreate, 2 calls         unsupported calls, and launches without a CPU twin
//! ```

mod allocations;
mod c_pointers;
mod context;
mod copy;
mod device;
mod device_memory;
mod error;
mod event;
mod export_macros;
mod handles;
mod init;
mod launch;
mod machine;
mod mempool;
mod memset;
mod module;
mod pinned_memory;
mod pointer_attributes;
mod primary_context;
mod proc_address;
mod report;
mod settings;
mod stream;
pub mod testing;
mod unsupported;
