//! Catalogs and plans: reading headers, refusing invalid files, planning reads.

mod counting;
mod damaged_files;
mod errors;
mod errors_npy;
mod expected;
mod fixtures;
mod glob;
mod open;
mod other_formats;
mod plan;
mod plan_converting;
mod reference_parser;
mod rows;
mod support;
