//! Built-in kernels, each in three forms that belong together:
//!
//! - `src/cuda/*.cu`: the CUDA C source,
//! - `src/cuda/builtin.ptx`: the PTX that NVRTC compiled from it. It is committed, so that building
//!   Pinlane needs no CUDA toolkit. `cargo xtask kernels` compiles it again, and a test checks that
//!   it belongs to the source,
//! - a CPU twin: a Rust function with the same result, which the simulated GPU runs.
//!
//! The crate also holds what the CPU does while it stages: [`convert`], with the same bits as the
//! kernels, and [`copy_streaming`]; and [`dot`], with the bits of its kernels.

pub mod convert;
mod copy_demoting;
mod copy_streaming;
mod cpu_kernel;
mod dot_cpu;
mod normalize_launch;
mod scatter_gather_table;
mod twins;
mod vector_instructions;

pub use copy_demoting::{can_demote, copy_demoting_raw};
pub use copy_streaming::{copy_streaming, copy_streaming_raw};
pub use cpu_kernel::{Kernel, Memory, MemoryFault, TwinResult};
pub use dot_cpu::{dot, dot_partials, dot_partials_shape, dot_sum_shape};
pub use normalize_launch::{MAX_CHANNELS, normalize_shape};
pub use scatter_gather_table::Piece;
pub use twins::{ROUND_TRIPS_ITEMS, SWEEP_BLOCKS, builtin, find};
pub use vector_instructions::Instructions;

/// All built-in kernels as one PTX module, for GPUs with compute capability 5.2 or later.
pub const PTX: &str = include_str!("cuda/builtin.ptx");
