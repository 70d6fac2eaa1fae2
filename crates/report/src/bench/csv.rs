//! A sweep as comma-separated values.

use std::fmt::Write;

use super::Bench;
use crate::{Figure, MemoryKind, Origin, Route};

/// The first line.
const HEADER: &str = "origin,device,profile,figure,memory,route,bytes,samples,median_ns,best_ns,\
                      p5_ns,p95_ns,gb_per_s,noisy";

impl Bench {
    /// One line for each figure under a line of names, as RFC 4180 has it but for the line ends. The
    /// column `figure` says `bandwidth` or `latency`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let origin = match &self.origin {
            Origin::Measured { device } => ["MEASURED", device, ""],
            Origin::Simulated { device, profile } => ["SIMULATED", device, profile],
            Origin::Computed {
                device, profile, ..
            } => ["COMPUTED", device, profile],
        };
        let origin = origin.map(quoted).join(",");
        let mut text = format!("{HEADER}\n");
        for line in &self.lines {
            let place = (line.memory, line.route, line.bytes);
            row(
                &mut text,
                &origin,
                "bandwidth",
                place,
                &line.figure,
                line.noisy,
            );
        }
        for line in &self.latencies {
            let place = (line.memory, line.route, line.bytes);
            let noisy = Bench::is_noisy(&line.figure);
            row(&mut text, &origin, "latency", place, &line.figure, noisy);
        }
        text
    }
}

fn row(
    text: &mut String,
    origin: &str,
    what: &str,
    (memory, route, bytes): (MemoryKind, Route, u64),
    figure: &Figure,
    noisy: bool,
) {
    let Figure {
        samples,
        median_ns,
        best_ns,
        p5_ns,
        p95_ns,
        gb_per_s,
    } = figure;
    let _ = writeln!(
        text,
        "{origin},{what},{},{},{bytes},{samples},{median_ns},{best_ns},{p5_ns},{p95_ns},\
         {gb_per_s},{noisy}",
        memory.name(),
        route.name()
    );
}

/// In quotes where the text would end its field.
fn quoted(text: &str) -> String {
    // A name that spans lines is none.
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
