//! Built-in kernels, each in three forms that belong together.
//!
//! - `src/cuda/*.cu`: the CUDA C source,
//! - `src/cuda/builtin.ptx`: what NVRTC made of it, committed, so that nobody needs a toolkit
//!   (`cargo xtask kernels` makes it anew, a test checks that it belongs to the source),
//! - a CPU twin: a Rust function with the same result, which the simulated GPU runs.
//!
//! Beside them stands what the CPU does itself while it stages: [`convert`] with the same bits as
//! the kernels, and [`copy_streaming`]; and [`dot`], with the bits of its kernels.

pub mod convert;
mod demoting;
mod dot;
mod instructions;
mod memory;
mod normalize;
mod pieces;
mod streaming;
mod twins;

pub use demoting::{can_demote, copy_demoting_raw};
pub use dot::{dot, dot_partials, dot_partials_shape, dot_sum_shape};
pub use instructions::Instructions;
pub use memory::{Memory, MemoryFault};
pub use normalize::{MAX_CHANNELS, normalize_shape};
pub use pieces::Piece;
use pinlane_driver::{KernelArg, LaunchShape, ParamKind};
pub use streaming::{copy_streaming, copy_streaming_raw};

/// What a CPU fetches and writes as a whole.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) const LINE_BYTES: usize = 64;

/// All built-in kernels as one PTX module, for any GPU from compute capability 5.2 on.
pub const PTX: &str = include_str!("cuda/builtin.ptx");

/// A built-in kernel as the simulated GPU knows it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name in the PTX module.
    pub name: &'static str,
    /// The types of its parameters, in order.
    pub params: &'static [ParamKind],
    /// The CPU twin. The arguments match `params`.
    pub run: fn(&mut dyn Memory, LaunchShape, &[KernelArg]) -> Result<(), MemoryFault>,
    /// Device bytes that it reads and writes: what a bandwidth-bound kernel costs.
    pub bytes_touched: fn(&[KernelArg]) -> u64,
    /// Time that it takes whatever the bandwidth, in nanoseconds.
    pub fixed_ns: fn(&[KernelArg]) -> u64,
}

/// All built-in kernels.
#[must_use]
pub fn builtin() -> &'static [Kernel] {
    twins::ALL
}

/// The built-in kernel of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    builtin().iter().find(|kernel| kernel.name == name)
}
