//! Weights on simulated devices: every byte arrives, however it is read and converted; and failures of
//! files, memory and device.

#[path = "../load/expected.rs"]
mod expected;
#[path = "../load/support.rs"]
#[allow(dead_code)] // only a part of it is used
mod support;

mod budget;
mod convert;
mod driver_panics;
mod dropped;
mod failing_calls;
mod file_changes;
mod fixtures;
mod host_read;
mod io;
mod kept_device_memory;
mod library;
mod load_stream;
mod out_of_memory;
mod timing;

mod errors_name_tensors;
mod invalid_config;
mod rig;
mod seeds;
mod selection;
mod slot_reuse;
mod target_window;
mod targets;
mod verify;
