//! Files of weights: what is in them, what is wrong with them, and how they are read.

mod counting;
mod errors;
mod errors_npy;
mod expected;
mod fixtures;
mod glob;
mod hostile;
mod open;
mod other_formats;
mod plan;
mod plan_converting;
mod reference;
mod rows;
mod support;
