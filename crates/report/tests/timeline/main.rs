//! Timelines and each of their formats, through the public interface.

mod check_trace;
mod hostile;
mod html;
mod random_charts;
mod sample;
mod spans_and_busy_time;
mod svg;
mod text;
mod trace;

#[cfg(unix)]
#[path = "../support/browser/mod.rs"]
mod browser;
#[cfg(unix)]
mod in_browser;

use pinlane_report::timeline::{Chart, Exporter};

/// What an exporter writes.
fn export(exporter: &dyn Exporter, chart: &Chart) -> String {
    let mut out = Vec::new();
    exporter
        .export(chart, &mut out)
        .expect("a vector takes everything");
    String::from_utf8(out).expect("formats are UTF-8")
}
