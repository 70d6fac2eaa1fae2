//! Catalogs and plans: reading headers, refusing invalid files, planning reads.

mod allocation_counter;
mod damaged_files;
mod expected;
mod glob;
mod npy_errors;
mod open;
mod other_formats;
mod plan;
mod plan_converting;
mod python_written_files;
mod reference_parser;
mod safetensors_errors;
mod support;
mod tensor_rows;
