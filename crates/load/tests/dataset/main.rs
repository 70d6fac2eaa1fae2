//! Datasets: samples of arrays, of archives, of functions, and transformed ones.
#![cfg(feature = "mmap")]

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
