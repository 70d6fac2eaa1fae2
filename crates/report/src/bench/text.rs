//! A sweep as tables.

use std::fmt::Write;

use super::{Bench, BenchLine};
use crate::format::size;
use crate::timeline::layout::words::{clean, duration};
use crate::{Figure, MemoryKind, Origin, Route};

/// Columns of a kind of memory.
const CELL: usize = 11;
/// Columns of the first cell of a row.
const HEAD: usize = 14;

impl Bench {
    /// The origin, a table for each direction, the latency of the smallest copy, and notes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("Bandwidth\n{}\n", clean(&self.origin.line()));
        if !self.complete {
            text.push_str("INCOMPLETE: interrupted before all was measured\n");
        }
        for route in Route::ALL {
            text.push_str(&self.table(route));
        }
        text.push_str(&self.latency_table());
        text.push_str(&self.footer());
        text
    }

    /// Sizes down, kinds across.
    fn table(&self, route: Route) -> String {
        let lines: Vec<_> = self
            .lines
            .iter()
            .filter(|line| line.route == route)
            .collect();
        let kinds = kinds(lines.iter().map(|line| line.memory));
        if kinds.is_empty() {
            return String::new();
        }
        let mut sizes: Vec<u64> = lines.iter().map(|line| line.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut text = format!("\n{}, GB/s\n{}", title(route), header("size", &kinds));
        for bytes in sizes {
            let _ = write!(text, "{:<HEAD$}", size(bytes));
            for kind in &kinds {
                let line = lines
                    .iter()
                    .find(|line| line.memory == *kind && line.bytes == bytes);
                let cell = line.map_or_else(|| "-".to_owned(), |line| self.cell(line));
                text.push_str(&padded(&cell));
            }
            text.push('\n');
        }
        text
    }

    fn cell(&self, line: &BenchLine) -> String {
        let rate = line.figure.gb_per_s;
        let rate = match rate {
            // So little that no digit would be left of it.
            rate if rate < 0.000_95 => format!("{rate:.1e}"),
            rate if rate < 0.095 => format!("{rate:.3}"),
            rate => format!("{rate:.1}"),
        };
        let noise = if line.noisy { "!" } else { "" };
        match self.is_simulated() {
            true => rate,
            false => format!("{rate} ±{:.0}%{noise}", spread_percent(&line.figure) / 2.0),
        }
    }

    fn latency_table(&self) -> String {
        let kinds = kinds(self.latencies.iter().map(|latency| latency.memory));
        let Some(bytes) = self.latencies.first().map(|latency| latency.bytes) else {
            return String::new();
        };
        let head = header("direction", &kinds);
        let mut text = format!("\nLatency: a copy of {}\n{head}", size(bytes));
        for route in Route::ALL {
            let here = |kind| {
                let mut all = self.latencies.iter();
                all.find(|latency| latency.memory == kind && latency.route == route)
            };
            if kinds.iter().all(|kind| here(*kind).is_none()) {
                continue;
            }
            let _ = write!(text, "{:<HEAD$}", route.words());
            for kind in &kinds {
                let cell = here(*kind).map_or_else(
                    || "-".to_owned(),
                    |latency| duration(latency.figure.median_ns),
                );
                text.push_str(&padded(&cell));
            }
            text.push('\n');
        }
        text
    }

    fn footer(&self) -> String {
        let mut text = match (self.is_simulated(), self.lines.is_empty()) {
            (_, true) => "\nNothing was measured.\n".to_owned(),
            (true, _) => "\nOne copy each, on the simulated clock. GB is 10^9 bytes".to_owned(),
            (false, _) => {
                let samples = self.lines.iter().map(|line| line.figure.samples);
                let (few, many) = samples.fold((u32::MAX, 0), |(few, many), samples| {
                    (few.min(samples), many.max(samples))
                });
                format!(
                    "\nMedian of {few} to {many} copies; ±: half of the way from the 5th to the 95th \
                     percentile;\n!: noisy. GB is 10^9 bytes"
                )
            }
        };
        if !self.lines.is_empty() {
            text.push_str("; both ways count the bytes of both.\n");
        }
        let noisy = self.lines.iter().filter(|line| line.noisy).count();
        if noisy > 0 {
            let _ = writeln!(
                text,
                "{noisy} of {} figures are noisy: their copies' times differ by more than a quarter; \
                 close other\nprograms, or give more --time.",
                self.lines.len()
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}.", clean(note));
        }
        text
    }

    fn is_simulated(&self) -> bool {
        !matches!(self.origin, Origin::Measured { .. })
    }
}

/// From the 5th to the 95th percentile, in percent of the median.
pub(crate) fn spread_percent(figure: &Figure) -> f64 {
    let spread_ns = figure.p95_ns.saturating_sub(figure.p5_ns);
    spread_ns as f64 / figure.median_ns.max(1) as f64 * 100.0
}

/// A cell of a row. Where it is too wide, it still stands apart from the one before.
fn padded(cell: &str) -> String {
    const WIDTH: usize = CELL - 1;
    format!(" {cell:>WIDTH$}")
}

/// Those that occur, in the order of tables.
fn kinds(occurring: impl Iterator<Item = MemoryKind>) -> Vec<MemoryKind> {
    let occurring: Vec<_> = occurring.collect();
    let all = MemoryKind::ALL.into_iter();
    all.filter(|kind| occurring.contains(kind)).collect()
}

fn header(first: &str, kinds: &[MemoryKind]) -> String {
    let mut text = format!("{first:<HEAD$}");
    for kind in kinds {
        let name = match kind {
            MemoryKind::WriteCombined => "write-comb",
            other => other.name(),
        };
        let _ = write!(text, "{name:>CELL$}");
    }
    text.push('\n');
    text
}

fn title(route: Route) -> &'static str {
    match route {
        Route::H2d => "Host to device",
        Route::D2h => "Device to host",
        Route::Both => "Both ways at once",
    }
}
