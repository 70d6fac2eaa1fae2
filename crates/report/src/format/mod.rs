//! Numbers and text as reports show them. A leaf: every other module may use it.

mod numbers;
mod text;

pub use numbers::short_size;
pub(crate) use numbers::{
    byte_rate, counted, duration, exact_size, factor_label, one_decimal, percent, rate,
    rounded_size, speedup_label, three_digits,
};
pub(crate) use text::{
    clip, display_width, labelled, padded_left, sanitize, table_row, wrap, wrap_where,
};
