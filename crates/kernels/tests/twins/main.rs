//! What the CPU twins compute.

mod arithmetic;
mod convert;
mod dot;
mod flat;
mod pieces;
