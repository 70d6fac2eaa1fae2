//! Weights on simulated devices: every byte arrives, however it is read and converted; and failures of
//! files, memory and device.

#[path = "../catalog_and_plan/expected.rs"]
mod expected;
#[path = "../catalog_and_plan/support.rs"]
#[allow(dead_code)] // only a part of it is used
mod support;

mod budget;
mod convert;
mod driver_panics;
mod dropped;
mod failing_calls;
mod file_changes;
mod host_read;
mod kept_device_memory;
mod loaded_tensor_iterator;
mod local_ranks;
mod other_library;
mod out_of_memory;
mod python_written_files;
mod read_modes;
mod wait_times;

mod errors_name_tensors;
mod given_memory;
mod given_memory_window;
mod invalid_config;
mod random_schedules_and_faults;
mod rig;
mod selection;
mod slot_reuse;
mod verify;
