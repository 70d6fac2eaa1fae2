//! Pages and pictures of sweeps and comparisons, through the public interface.

mod bench;
mod check_markup;
mod compare;
mod feed;
mod hostile;
mod program_trace;
mod sample;

#[cfg(unix)]
#[allow(dead_code, reason = "timelines need more of it")]
#[path = "../support/browser/mod.rs"]
mod browser;
#[cfg(unix)]
mod in_browser;
