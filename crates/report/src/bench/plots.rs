//! A sweep as plots.

use std::collections::BTreeSet;

use super::{Bench, BenchLatency, BenchLine};
use crate::format::amount;
use crate::page::{Tip, TipRow};
use crate::plot::figures::{range, rate, spread, time_range};
use crate::plot::{Axis, Bar, BarChart, BarGroup, Hue, Line, LinePlot, Part, Point, Scale, Stop};
use crate::timeline::layout::words::duration;
use crate::{MemoryKind, Origin, Route};

/// What the pictures are called.
pub(super) const TITLE: &str = "Transfer bandwidth by size";

/// Words as a heading.
pub(super) fn heading(words: &str) -> String {
    let mut chars = words.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

impl Bench {
    /// How it was measured.
    pub(super) fn about(&self) -> String {
        let mut about = match &self.began {
            Some(began) => format!("Began {began}. "),
            None => String::new(),
        };
        if !matches!(self.origin, Origin::Measured { .. }) {
            return "One copy each, on the simulated clock; GB is 10⁹ bytes.".to_owned();
        }
        let shown =
            "Lines are medians, bands reach from the 5th to the 95th percentile; GB is 10⁹ bytes.";
        let each = duration(self.budget_ns);
        let seed = self.seed;
        about.push_str(&format!(
            "{each} for each combination, in the order of seed {seed}. {shown}"
        ));
        about
    }

    /// What must not be overlooked.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.complete {
            warnings
                .push("Incomplete: the run was interrupted, so figures are missing.".to_owned());
        }
        if self.lines.is_empty() {
            warnings.push("Nothing was measured.".to_owned());
        }
        let noisy = self.lines.iter().filter(|line| line.noisy).count();
        if noisy > 0 {
            warnings.push(format!(
                "Noisy: {noisy} of {} figures, with a ring around the mark. Times of their copies differ so much that the median says little.",
                self.lines.len()
            ));
        }
        warnings
    }

    pub(super) fn latency_heading(&self) -> String {
        let mut sizes: Vec<u64> = self.latencies.iter().map(|entry| entry.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        match sizes.as_slice() {
            [bytes] => format!("What the smallest copy takes ({})", amount(*bytes)),
            _ => "What the smallest copy takes".to_owned(),
        }
    }

    /// Routes that were measured.
    pub(super) fn routes(&self) -> Vec<Route> {
        let measured = |route: &Route| self.lines.iter().any(|line| line.route == *route);
        Route::ALL.into_iter().filter(measured).collect()
    }

    /// Kinds of memory that were measured this way.
    pub(super) fn kinds(&self, route: Route) -> Vec<MemoryKind> {
        let lines = || self.lines.iter().filter(|line| line.route == route);
        let measured = |memory: &MemoryKind| lines().any(|line| line.memory == *memory);
        MemoryKind::ALL.into_iter().filter(measured).collect()
    }

    /// Sizes that were measured this way, from the smallest.
    pub(super) fn sizes(&self, route: Route) -> Vec<u64> {
        let lines = self.lines.iter().filter(|line| line.route == route);
        let sizes: BTreeSet<u64> = lines.map(|line| line.bytes).collect();
        sizes.into_iter().collect()
    }

    /// One combination.
    pub(super) fn line(&self, route: Route, memory: MemoryKind, bytes: u64) -> Option<&BenchLine> {
        let is_it =
            |line: &&BenchLine| line.route == route && line.memory == memory && line.bytes == bytes;
        self.lines.iter().find(is_it)
    }

    /// The fastest of a route.
    pub(super) fn fastest(&self, route: Route) -> Option<&BenchLine> {
        let lines = self.lines.iter().filter(|line| line.route == route);
        lines.max_by(|a, b| a.figure.gb_per_s.total_cmp(&b.figure.gb_per_s))
    }

    /// Bandwidth over size, a line a kind of memory, with at most about so many sizes marked.
    pub(super) fn plot(&self, route: Route, scale: Scale, marks: usize) -> LinePlot<'_> {
        let sizes = self.sizes(route);
        let kinds = self.kinds(route);
        let line = |memory: &MemoryKind| self.plot_line(route, *memory, &sizes);
        let (smallest, largest) = (sizes.first(), sizes.last());
        LinePlot {
            origin: &self.origin,
            x: Axis::sizes(
                smallest.copied().unwrap_or(1),
                largest.copied().unwrap_or(1),
                marks,
            ),
            y: self.rates_axis(route, scale),
            unit: "GB/s",
            lines: kinds.iter().filter_map(line).collect(),
            stops: sizes
                .iter()
                .map(|bytes| Stop {
                    x: (*bytes).max(1) as f64,
                    tip: self.tip(route, *bytes),
                })
                .collect(),
        }
    }

    fn plot_line(&self, route: Route, memory: MemoryKind, sizes: &[u64]) -> Option<Line> {
        let found = sizes
            .iter()
            .filter_map(|bytes| self.line(route, memory, *bytes));
        let points: Vec<Point> = found
            .map(|line| {
                let (low, high) = spread(route.moved(line.bytes), &line.figure);
                Point {
                    x: line.bytes.max(1) as f64,
                    low,
                    middle: line.figure.gb_per_s,
                    high,
                    noisy: line.noisy,
                }
            })
            .collect();
        let last = rate(points.last()?.middle);
        Some(Line {
            hue: Hue::of(memory),
            name: memory.name().to_owned(),
            last,
            points,
        })
    }

    /// One-way plots have one scale, so that they can be held against each other.
    fn rates_axis(&self, route: Route, scale: Scale) -> Axis {
        let together = |line: &&BenchLine| (line.route == Route::Both) == (route == Route::Both);
        let rates = || {
            let lines = self.lines.iter().filter(together);
            lines.map(|line| {
                (
                    line.figure.gb_per_s,
                    spread(line.route.moved(line.bytes), &line.figure).1,
                )
            })
        };
        let top = rates().map(|(middle, _)| middle).fold(0.0, f64::max);
        // A stray sample does not squeeze all lines to the ground.
        let high = rates()
            .map(|(_, high)| high)
            .fold(0.0, f64::max)
            .min(top * 1.15);
        match scale {
            Scale::Linear => Axis::numbers(high, 6),
            Scale::Log => {
                let low = rates().map(|(middle, _)| middle).filter(|rate| *rate > 0.0);
                Axis::factors(low.fold(f64::INFINITY, f64::min), high, 10)
            }
        }
    }

    /// All kinds at one size, the fastest first.
    fn tip(&self, route: Route, bytes: u64) -> Tip {
        let kinds = self.kinds(route);
        let mut lines: Vec<&BenchLine> = kinds
            .iter()
            .filter_map(|memory| self.line(route, *memory, bytes))
            .collect();
        lines.sort_by(|a, b| b.figure.gb_per_s.total_cmp(&a.figure.gb_per_s));
        Tip {
            title: format!("{}, {}", amount(bytes), route.words()),
            rows: lines.into_iter().map(tip_row).collect(),
        }
    }

    /// What the smallest copy takes, where it was measured.
    pub(super) fn latency_chart(&self) -> Option<BarChart<'_>> {
        let longest = self.latencies.iter().map(|entry| entry.figure.median_ns);
        let longest_ns = longest.max()?;
        let group = |memory: MemoryKind| {
            let bars: Vec<Bar> = Route::ALL
                .into_iter()
                .filter_map(|route| self.latency(memory, route))
                .map(latency_bar)
                .collect();
            (!bars.is_empty()).then(|| BarGroup {
                name: memory.name().to_owned(),
                note: String::new(),
                bars,
            })
        };
        Some(BarChart {
            origin: &self.origin,
            axis: Axis::times(longest_ns, 6),
            unit: "",
            note_title: "",
            groups: MemoryKind::ALL.into_iter().filter_map(group).collect(),
            limit: None,
        })
    }

    /// The smallest copy of a kind.
    pub(super) fn latency(&self, memory: MemoryKind, route: Route) -> Option<&BenchLatency> {
        let is_it = |entry: &&BenchLatency| entry.memory == memory && entry.route == route;
        self.latencies.iter().find(is_it)
    }
}

fn tip_row(line: &BenchLine) -> TipRow {
    let noisy = if line.noisy { ", noisy" } else { "" };
    TipRow {
        look: Some(Hue::of(line.memory).class()),
        name: line.memory.name().to_owned(),
        cells: vec![
            format!("{} GB/s", rate(line.figure.gb_per_s)),
            range(line.route.moved(line.bytes), &line.figure),
            format!("{}{noisy}", duration(line.figure.median_ns)),
        ],
    }
}

fn latency_bar(entry: &BenchLatency) -> Bar {
    let figure = &entry.figure;
    Bar {
        caption: entry.route.words().to_owned(),
        parts: vec![Part {
            value: figure.median_ns as f64,
            hue: Hue::of(entry.memory),
            soft: entry.route == Route::D2h,
        }],
        label: duration(figure.median_ns),
        tip: Tip {
            title: format!(
                "{}, {} {}",
                amount(entry.bytes),
                entry.memory.name(),
                entry.route.words()
            ),
            rows: vec![
                TipRow::plain("median", duration(figure.median_ns)),
                TipRow::plain("shortest", duration(figure.best_ns)),
                TipRow::plain("5% – 95%", time_range(figure)),
                TipRow::plain("copies", figure.samples.to_string()),
            ],
        },
    }
}
