//! What the CPU twins compute.

mod arithmetic;
mod convert;
mod flat;
mod pieces;
