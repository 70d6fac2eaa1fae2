//! A sweep as text.

use std::fmt::Write;

use super::{Bench, BenchLine};
use crate::format::{column_rate, duration, exact_size};
use crate::text_layout::{notes_as_text, sanitize, table_row};
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
        text.extend(self.routes().into_iter().map(|route| self.table(route)));
        text + &self.latency_table() + &self.footer() + &notes_as_text(&self.notes)
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
            let cell = |kind| Some(self.cell(self.line(route, kind, bytes)?));
            text.push_str(&row(&exact_size(bytes), &kinds, cell));
        }
        text
    }

    fn cell(&self, line: &BenchLine) -> String {
        let rate = column_rate(line.stats.gb_per_s);
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
        let measured = |kind| {
            Route::ALL
                .into_iter()
                .any(|it| self.latency(kind, it).is_some())
        };
        let mut kinds = MemoryKind::ALL.to_vec();
        kinds.retain(|kind| measured(*kind));
        let (bytes, head) = (exact_size(first.point.bytes), header("direction", &kinds));
        let mut text = format!("\nLatency: a copy of {bytes}\n{head}");
        for route in Route::ALL {
            let cell = |kind| Some(duration(self.latency(kind, route)?.stats.median_ns));
            if kinds.iter().any(|kind| cell(*kind).is_some()) {
                text.push_str(&row(route.words(), &kinds, cell));
            }
        }
        text
    }

    fn footer(&self) -> String {
        if self.lines.is_empty() {
            return "\nNothing was measured.\n".to_owned();
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
        text
    }
}

fn header(first: &str, kinds: &[MemoryKind]) -> String {
    let name = |kind: MemoryKind| match kind {
        MemoryKind::WriteCombined => "write-comb",
        other => other.name(),
    };
    row(first, kinds, |kind| Some(name(kind).to_owned()))
}

fn row(first: &str, kinds: &[MemoryKind], cell: impl Fn(MemoryKind) -> Option<String>) -> String {
    let mut widths = vec![KIND_COLUMNS; kinds.len() + 1];
    widths[0] = HEAD_COLUMNS;
    let mut cells = vec![first.to_owned()];
    cells.extend(
        kinds
            .iter()
            .map(|kind| cell(*kind).unwrap_or_else(|| "-".to_owned())),
    );
    table_row(&widths, &cells)
}
