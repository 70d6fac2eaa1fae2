//! CUDA C to PTX at run time, through NVIDIA's compiler library NVRTC.
//!
//! NVRTC is found at run time, where PyTorch and CuPy find it. Nothing here needs it to build, and compiling
//! needs no GPU.
//!
//! ```text
//!   Compiler::load ── library_search   finds libnvrtc: loaded already, CUDA toolkit, Python environment
//!      │              library          its functions
//!      └─ compile ──> Ptx              options, the compiler's log, names and parameters of the kernels
//! ```
//!
//! ```
//! use pinlane_nvrtc::{CompileOptions, Compiler};
//!
//! let source = "__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }";
//! match Compiler::load() {
//!     Ok(compiler) => {
//!         let ptx = compiler.compile(source, &CompileOptions::default())?;
//!         assert_eq!(ptx.entry("fill"), Some("_Z4fillPff"));
//!     }
//!     Err(error) => println!("{error}"), // where it was searched, and how to install it
//! }
//! # Ok::<(), pinlane_nvrtc::NvrtcError>(())
//! ```

mod compiler;
mod error;
mod kernel_names;
mod kernel_params;
mod library;
mod library_search;

pub use compiler::{CompileOptions, Compiler, Ptx};
pub use error::NvrtcError;
pub use kernel_params::PtxParam;
