//! One module per command.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod compare_memory;
pub(crate) mod completions_and_man;
pub(crate) mod doctor;
pub(crate) mod dot_product;
pub(crate) mod feed;
pub(crate) mod load;
pub(crate) mod overlap;
pub(crate) mod plan;
pub(crate) mod selftest;
