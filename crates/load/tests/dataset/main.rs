//! Datasets: arrays, archives, functions and maps.

mod arrays;
mod arrays_faults;
mod counting;
mod functions;
mod maps;
mod memory;
mod support;
mod tar;
mod tar_faults;
mod tar_gnu;
mod tar_hostile;
mod tar_large;
mod tar_layout;
