//! Weights on simulated devices: every byte of every tensor is there, however it was read and
//! converted, and what happens when files, memory or the device fail.

#[path = "../load/expected.rs"]
mod expected;
#[path = "../load/support.rs"]
#[allow(dead_code)] // a part of it is used
mod support;

mod budget;
mod calls;
mod changes;
mod convert;
mod driver_panics;
mod dropped;
mod fixtures;
mod full;
mod in_time;
mod io;
mod kept;
mod load_stream;

mod named;
mod refusals;
mod rig;
mod seeds;
mod selection;
mod slots;
mod verify;
