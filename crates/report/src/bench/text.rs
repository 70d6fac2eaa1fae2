//! A sweep as text.

use std::fmt::Write;

use super::{Bench, BenchLine};
use crate::format::{duration, exact_size, sanitize, table_row};
use crate::{MemoryKind, Route};

/// Width of the first column.
const HEAD_COLUMNS: usize = 14;
/// Width of the column of a kind of memory.
const KIND_COLUMNS: usize = 11;

impl Bench {
    /// The origin, a table for each direction, the latency of the smallest copy, and notes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("Bandwidth\n{}\n", sanitize(&self.origin.line()));
        if !self.complete {
            text.push_str("INCOMPLETE: interrupted before the end\n");
        }
        for route in self.routes() {
            text.push_str(&self.table(route));
        }
        text.push_str(&self.latency_table());
        text.push_str(&self.footer());
        text
    }

    /// Sizes down, kinds across.
    fn table(&self, route: Route) -> String {
        let title = match route {
            Route::H2d => "Host to device",
            Route::D2h => "Device to host",
            Route::Both => "Both ways at once",
        };
        let kinds = self.kinds(route);
        let mut text = format!("\n{title}, GB/s\n{}", header("size", &kinds));
        for bytes in self.sizes(route) {
            text.push_str(&row(&exact_size(bytes), &kinds, |kind| {
                self.line(route, kind, bytes).map(|line| self.cell(line))
            }));
        }
        text
    }

    fn cell(&self, line: &BenchLine) -> String {
        let rate = match line.stats.gb_per_s {
            // Fixed decimals would leave no digit.
            rate if rate < 0.000_95 => format!("{rate:.1e}"),
            rate if rate < 0.095 => format!("{rate:.3}"),
            rate => format!("{rate:.1}"),
        };
        if !self.origin.is_measured() {
            return rate;
        }
        let noisy = if line.noisy { "!" } else { "" };
        let half_spread = line.stats.spread_percent() / 2.0;
        format!("{rate} ±{half_spread:.0}%{noisy}")
    }

    fn latency_table(&self) -> String {
        let Some(first) = self.latencies.first() else {
            return String::new();
        };
        let has = |kind: &MemoryKind| {
            self.latencies
                .iter()
                .any(|entry| entry.point.memory == *kind)
        };
        let kinds: Vec<MemoryKind> = MemoryKind::ALL.into_iter().filter(has).collect();
        let head = header("direction", &kinds);
        let mut text = format!(
            "\nLatency: a copy of {}\n{head}",
            exact_size(first.point.bytes)
        );
        for route in Route::ALL {
            if self
                .latencies
                .iter()
                .any(|entry| entry.point.route == route)
            {
                text.push_str(&row(route.words(), &kinds, |kind| {
                    let latency = self.latency(kind, route)?;
                    Some(duration(latency.stats.median_ns))
                }));
            }
        }
        text
    }

    fn footer(&self) -> String {
        if self.lines.is_empty() {
            return self.with_notes("\nNothing was measured.\n".to_owned());
        }
        let mut text = match self.origin.is_measured() {
            false => "\nOne copy each, by the simulated clock. GB is 10^9 bytes".to_owned(),
            true => {
                let samples = || self.lines.iter().map(|line| line.stats.samples);
                let (fewest, most) = (samples().min(), samples().max());
                format!(
                    "\nMedian of {} to {} copies; ±: half the distance from the 5th to the 95th percentile;\n\
                     !: noisy. GB is 10^9 bytes",
                    fewest.unwrap_or(0),
                    most.unwrap_or(0)
                )
            }
        };
        text.push_str("; both ways counts the bytes of both directions.\n");
        let noisy = self.noisy_lines();
        if noisy > 0 {
            let _ = writeln!(
                text,
                "{noisy} of {} figures are noisy: their times vary by more than a quarter of the median. \
                 Close other\nprograms, or allow more --time.",
                self.lines.len()
            );
        }
        self.with_notes(text)
    }

    fn with_notes(&self, mut text: String) -> String {
        for note in &self.notes {
            let _ = writeln!(text, "{}.", sanitize(note));
        }
        text
    }
}

fn header(first: &str, kinds: &[MemoryKind]) -> String {
    row(first, kinds, |kind| {
        Some(match kind {
            MemoryKind::WriteCombined => "write-comb".to_owned(),
            other => other.name().to_owned(),
        })
    })
}

fn row(first: &str, kinds: &[MemoryKind], cell: impl Fn(MemoryKind) -> Option<String>) -> String {
    let mut widths = vec![HEAD_COLUMNS];
    let mut cells = vec![first.to_owned()];
    for kind in kinds {
        widths.push(KIND_COLUMNS);
        cells.push(cell(*kind).unwrap_or_else(|| "-".to_owned()));
    }
    table_row(&widths, &cells)
}
