//! What the fuzz targets check: one function for every parser of bytes that others wrote.
//!
//! ```text
//!   fuzz/fuzz_targets/NAME.rs   the fuzzer makes up bytes ─┐
//!   tests/corpora.rs            replays fuzz/corpus/NAME ──┴─ pinlane_fuzz::NAME(bytes)
//! ```
//!
//! A function panics if a parser panics, or accepts what it must refuse, or returns something else than a
//! slow or foreign parser does. An error is a good outcome. The functions go through public interfaces and
//! use files where users do.

#![forbid(unsafe_code)]

mod bench_report;
mod glob;
mod load_plan;
mod loader_state;
mod profile;
mod reference_parser;
mod scratch;
mod size;
mod tar;
mod tensor_file_headers;

pub use bench_report::report;
pub use glob::glob;
pub use load_plan::check_plan;
pub use loader_state::state;
pub use profile::profile;
pub use reference_parser::compare_with_reference;
pub use size::size;
pub use tar::tar;
pub use tensor_file_headers::{check_error, index, npy, safetensors};

/// A fuzz target: what it does with some bytes.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 9] = [
    ("glob", glob),
    ("index", index),
    ("npy", npy),
    ("profile", profile),
    ("report", report),
    ("safetensors", safetensors),
    ("size", size),
    ("state", state),
    ("tar", tar),
];
