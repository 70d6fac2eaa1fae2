//! A calibration as a table.

use super::{BothRates, Calibration, CalibrationFigures};
use crate::Origin;
use crate::format::size;
use crate::timeline::layout::words::{clean, duration};

impl Calibration {
    /// The origin, a table of the main figures, where the profile is, and what to do next.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("Calibration\n{}\n\n", clean(&self.origin.line()));
        text.push_str(&copies(&self.figures));
        text.push('\n');
        text.push_str(&costs(&self.figures));
        text.push('\n');
        text.push_str(&self.ending());
        text
    }

    fn ending(&self) -> String {
        let took = duration(self.took_ns);
        let simulated = matches!(self.origin, Origin::Simulated { .. });
        let mut text = match simulated {
            true => format!("Took       {took} of simulated time\n"),
            false => format!("Took       {took}\n"),
        };
        for file in &self.written {
            text.push_str(&format!("Written to {file}\n"));
        }
        if self.written.is_empty() {
            text.push_str("Written to no file");
            text.push_str(match simulated && !self.write_failed {
                true => ": simulated devices are not kept; --output FILE writes one\n",
                false => "\n",
            });
        }
        if !self.next.is_empty() {
            text.push_str(&format!("Next       {}\n", self.next));
        }
        text
    }
}

fn copies(figures: &CalibrationFigures) -> String {
    let mut text = row("copies", "host to device", "device to host");
    text.push_str(&rates("pinned", figures.pinned));
    text.push_str(&rates("pageable", figures.pageable));
    match &figures.express {
        Some(express) => {
            let lanes = match express.lanes {
                1 => "1 lane".to_owned(),
                lanes => format!("{lanes} lanes"),
            };
            text.push_str(&rates(&format!("express, {lanes}"), express.rates));
        }
        None => text.push_str(&row("express", "not measured", "not measured")),
    }
    if let Some(files) = &figures.files {
        let threads = match files.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        text.push_str(&row(
            &format!("files, {threads}"),
            &rate(Some(files.gb_per_s)),
            "-",
        ));
    }
    if let Some(together) = figures.both_ways_gb_per_s {
        text.push_str(&format!(
            "Pinned both ways at once: {together:.1} GB/s; a copy takes {}% of its time alone.\n",
            figures.both_ways_percent
        ));
    }
    text.push_str(&format!(
        "{} a copy; GB is 10^9 bytes.\n",
        size(figures.copy_bytes)
    ));
    text
}

fn costs(figures: &CalibrationFigures) -> String {
    let mut text = String::new();
    for (what, ns) in [
        ("kernel launch", figures.launch_ns),
        ("hand-over from one engine to another", figures.handover_ns),
        ("turning an engine to another stream", figures.switch_ns),
        ("submitting a copy or kernel", figures.submit_ns),
        ("waking a thread that waits", figures.wake_ns),
        (
            "1 GiB pinned, allocated by the driver",
            figures.pinning.alloc_ns_per_gib,
        ),
        (
            "pinning 1 GiB in place",
            figures.pinning.register_ns_per_gib,
        ),
    ] {
        text.push_str(&format!("{what:<40}{:>14}\n", duration(ns)));
    }
    let kernels = rate(figures.kernel_gb_per_s);
    text.push_str(&format!(
        "{:<40}{kernels:>14}\n",
        "kernels in device memory"
    ));
    text
}

fn rates(what: &str, rates: BothRates) -> String {
    row(what, &rate(rates.h2d_gb_per_s), &rate(rates.d2h_gb_per_s))
}

fn rate(gb_per_s: Option<f64>) -> String {
    gb_per_s.map_or_else(
        || "takes no time".to_owned(),
        |rate| format!("{rate:.1} GB/s"),
    )
}

fn row(what: &str, first: &str, second: &str) -> String {
    format!("{what:<22}{first:>16}{second:>16}\n")
}
