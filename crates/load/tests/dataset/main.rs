//! Datasets: arrays, archives, functions and maps.

mod allocation_counter;
mod arrays;
mod arrays_faults;
mod arrays_in_memory;
mod functions;
mod maps;
mod support;
mod tar;
mod tar_faults;
mod tar_gnu;
mod tar_hostile;
mod tar_large;
mod tar_layout;
