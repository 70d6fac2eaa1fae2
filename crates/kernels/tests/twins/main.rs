//! What the CPU twins compute.

mod arithmetic;
mod convert;
mod dot;
mod flat;
mod normalize;
mod scatter_gather;
