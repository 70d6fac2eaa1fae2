//! How much the tests run: reduced by default, in full with `PINLANE_TEST=full`.
//!
//! `cargo test` must be quick enough to run after every edit, so slow tests try fewer cases there,
//! or are skipped. `cargo xtask test` sets the variable and runs everything. A test that is reduced
//! says so in its doc comment.
//!
//! ```
//! let seeds = pinlane_testing::full_or(2000, 100);
//! # assert!(seeds == 2000 || seeds == 100);
//! ```

use std::env;

const VARIABLE: &str = "PINLANE_TEST";

/// Whether the tests run in full.
///
/// # Panics
/// If `PINLANE_TEST` is set to anything but `full`.
#[must_use]
pub fn full() -> bool {
    match env::var_os(VARIABLE) {
        None => false,
        Some(value) if value == "full" => true,
        Some(value) => panic!("{VARIABLE} must be `full` or unset, not {value:?}"),
    }
}

/// `all` if the tests run in full, else `reduced`.
#[must_use]
pub fn full_or<T>(all: T, reduced: T) -> T {
    if full() { all } else { reduced }
}

/// Whether to skip a test that only a full run includes. Says so.
#[must_use]
pub fn skip_slow_test() -> bool {
    if !full() {
        println!("skipped: slow; set {VARIABLE}=full to run it");
    }
    !full()
}
