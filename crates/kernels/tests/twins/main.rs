//! What the CPU twins compute.

mod bounded_memory;
mod convert;
mod dot;
mod normalize;
mod scatter_gather;
mod small_kernels;
