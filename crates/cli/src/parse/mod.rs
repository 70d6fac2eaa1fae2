//! Values of command-line flags.

pub(crate) mod dtype;
mod duration;
pub(crate) mod number;
mod one_of;
mod rate;
pub(crate) mod size;

pub(crate) use duration::{DURATION_NS_MAX, duration};
pub(crate) use one_of::one_of;
pub(crate) use rate::rate;

/// Several items in one value of a flag. To clap, the name `Vec` would mean a flag that may be repeated.
pub(crate) type List<T> = Vec<T>;
