//! The simulated GPU under libcuda's own names.
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
//! a driver-API program runs on the simulated GPU, its misuse of pinned memory reported at the end.
//!
//! What is exported is what a driver of CUDA 13.0 exports. A call either works, or answers
//! `CUDA_ERROR_NOT_SUPPORTED` and is named in the report.
//!
//! Handles that a program passes in are looked up, never followed. Each exported function is a thin
//! shim around safe code (`shim`); pointers come wrapped in types that check for null (`ffi`).
//!
//! # Settings
//! Environment variables, read once:
//!
//! | variable | meaning |
//! |---|---|
//! | `PINLANE_SIMCUDA_PROFILE` | built-in profile or path of a TOML file; default `h200` |
//! | `PINLANE_SIMCUDA_DEVICES` | number of devices, default 1; with 0 `cuInit` finds no device |
//! | `PINLANE_SIMCUDA_VERSION` | what `cuDriverGetVersion` says, such as `11020`; default `13000`, which is also the highest |
//! | `PINLANE_SIMCUDA_OMIT` | comma list of names that `cuGetProcAddress` does not find (for `dlsym` see [`testing::omit`]) |
//! | `PINLANE_SIMCUDA_FAIL` | `busy`: every context is refused; `lost:N`: the GPU is lost after N calls |
//! | `PINLANE_SIMCUDA_SEED` | number: an adversarial schedule instead of the plain one |
//! | `PINLANE_SIMCUDA_REPORT` | file for the report; without it what is wrong goes to stderr |
//!
//! # The report
//! Written when the process ends, one line for each thing:
//!
//! ```text
//! context: device 0, primary, 1 time          which devices ever got a context
//! misuse: double free: host_free: …           what the simulator found
//! leak: pinned memory leaked: host_alloc: …   what was still there at the end
//! unsupported: cuGraphCreate, 2 calls         calls, and launches without a CPU twin
//! ```

mod attributes;
mod batch;
mod callback;
mod code;
mod context;
mod copy;
mod copy_2d;
mod current;
mod device;
mod error;
mod event;
mod ffi;
mod handles;
mod host;
mod launch;
mod ledger;
mod memory;
mod mempool;
mod memset;
mod module;
mod pointer;
mod primary;
mod proc_address;
mod report;
mod settings;
mod shim;
mod start;
mod state;
mod stream;
mod stream_info;
pub mod testing;
mod unsupported;
