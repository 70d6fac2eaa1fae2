//! A sweep as plots, and as a picture.

use super::{Bench, BenchLatency, BenchLine};
use crate::format::{duration, rate, short_size};
use crate::page::{Tooltip, TooltipRow};
use crate::plot::standalone_svg::Picture;
use crate::plot::{
    Axis, BarChart, BarGroup, ChartBar, Line, LinePlot, LinePoint, LineStop, Scale, SeriesStyle,
};
use crate::{MemoryKind, Route};

pub(super) const TITLE: &str = "Transfer bandwidth by size";

/// With a capital first letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

impl Bench {
    /// A standalone picture: bandwidth over size, one plot per direction, and the latency of the smallest
    /// copy. Follows the viewer's light or dark theme.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut picture = Picture::new(TITLE, &self.origin);
        picture.texts("dim", &[self.about()]);
        picture.texts("", &self.warnings());
        for route in self.routes() {
            let drawing = self.plot(route, Scale::Linear, 8).draw(&Picture::CANVAS);
            picture.drawing(&capitalized(route.words()), &drawing);
        }
        if let Some(chart) = self.latency_chart() {
            let drawing = chart.draw(&Picture::CANVAS);
            picture.drawing(&self.latency_heading(), &drawing);
        }
        picture.texts("dim", &self.notes);
        picture.finish()
    }

    pub(super) fn about(&self) -> String {
        if !self.origin.is_measured() {
            return "One copy each, by the simulated clock. GB is 10⁹ bytes.".to_owned();
        }
        let began = self.began.as_ref();
        let began = began.map_or_else(String::new, |began| format!("Started {began}. "));
        format!(
            "{began}{} per combination, in the order of seed {}. Lines are medians; bands span the 5th to \
             the 95th percentile. GB is 10⁹ bytes.",
            duration(self.budget_ns),
            self.seed
        )
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.complete {
            warnings.push("Incomplete: the run was interrupted; figures are missing.".to_owned());
        }
        if self.lines.is_empty() {
            warnings.push("Nothing was measured.".to_owned());
        }
        let noisy = self.noisy_lines();
        if noisy > 0 {
            warnings.push(format!(
                "Noisy: {noisy} of {} figures, marked by a ring. Their times vary too much for a meaningful median.",
                self.lines.len()
            ));
        }
        warnings
    }

    pub(super) fn latency_heading(&self) -> String {
        let mut sizes = self.latencies.iter().map(|entry| entry.point.bytes);
        match sizes.next() {
            Some(bytes) if sizes.all(|other| other == bytes) => {
                format!("Latency of the smallest copy ({})", short_size(bytes))
            }
            _ => "Latency of the smallest copy".to_owned(),
        }
    }

    /// Bandwidth over size, one line per kind of memory, with at most about `ticks` sizes labelled.
    pub(super) fn plot(&self, route: Route, scale: Scale, ticks: usize) -> LinePlot<'_> {
        let sizes = self.sizes(route);
        let kinds = self.kinds(route).into_iter();
        let smallest = sizes.first().copied().unwrap_or(1);
        let largest = sizes.last().copied().unwrap_or(1);
        let stop = |bytes: &u64| LineStop {
            x: (*bytes).max(1) as f64,
            tooltip: self.tooltip(route, *bytes),
        };
        LinePlot {
            origin: &self.origin,
            x: Axis::sizes(smallest, largest, ticks),
            y: self.rates_axis(route, scale),
            unit: "GB/s",
            lines: kinds
                .filter_map(|memory| self.plot_line(route, memory, &sizes))
                .collect(),
            stops: sizes.iter().map(stop).collect(),
        }
    }

    fn plot_line(&self, route: Route, memory: MemoryKind, sizes: &[u64]) -> Option<Line> {
        let point = |bytes: &u64| {
            let line = self.line(route, memory, *bytes)?;
            let (low, high) = line.stats.rate_bounds(line.point.moved_bytes());
            Some(LinePoint {
                x: line.point.bytes.max(1) as f64,
                low,
                median: line.stats.gb_per_s,
                high,
                noisy: line.noisy,
            })
        };
        let points: Vec<LinePoint> = sizes.iter().filter_map(point).collect();
        Some(Line {
            style: SeriesStyle::of(memory),
            name: memory.name().to_owned(),
            last: rate(points.last()?.median),
            points,
        })
    }

    /// One-way plots share a scale, so that they can be compared.
    fn rates_axis(&self, route: Route, scale: Scale) -> Axis {
        let both = route == Route::Both;
        let lines = || {
            let lines = self.lines.iter();
            lines.filter(move |line| (line.point.route == Route::Both) == both)
        };
        let medians = || lines().map(|line| line.stats.gb_per_s);
        let highs = lines().map(|line| line.stats.rate_bounds(line.point.moved_bytes()).1);
        // An outlier must not flatten all lines.
        let top = medians().fold(0.0, f64::max) * 1.15;
        let high = highs.fold(0.0, f64::max).min(top);
        match scale {
            Scale::Linear => Axis::numbers(high, 6),
            Scale::Log => {
                let low = medians().filter(|rate| *rate > 0.0);
                Axis::factors(low.fold(f64::INFINITY, f64::min), high, 10)
            }
        }
    }

    /// All kinds at one size, the fastest first.
    fn tooltip(&self, route: Route, bytes: u64) -> Tooltip {
        let lines = self.lines.iter();
        let mut lines: Vec<&BenchLine> = lines
            .filter(|line| (line.point.route, line.point.bytes) == (route, bytes))
            .collect();
        lines.sort_by(|a, b| b.stats.gb_per_s.total_cmp(&a.stats.gb_per_s));
        Tooltip {
            title: format!("{}, {}", short_size(bytes), route.words()),
            rows: lines.into_iter().map(tooltip_row).collect(),
        }
    }

    /// Latencies of the smallest copy, if measured.
    pub(super) fn latency_chart(&self) -> Option<BarChart<'_>> {
        let medians_ns = self.latencies.iter().map(|entry| entry.stats.median_ns);
        let longest_ns = medians_ns.max()?;
        let group = |memory: MemoryKind| {
            let latencies = Route::ALL.map(|route| self.latency(memory, route));
            let bars: Vec<ChartBar> = latencies.into_iter().flatten().map(latency_bar).collect();
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
}

fn tooltip_row(line: &BenchLine) -> TooltipRow {
    let noisy = if line.noisy { ", noisy" } else { "" };
    TooltipRow {
        colour: Some(SeriesStyle::of(line.point.memory).class()),
        name: line.point.memory.name().to_owned(),
        cells: vec![
            format!("{} GB/s", rate(line.stats.gb_per_s)),
            line.stats.rate_range(line.point.moved_bytes()),
            format!("{}{noisy}", duration(line.stats.median_ns)),
        ],
    }
}

fn latency_bar(entry: &BenchLatency) -> ChartBar {
    let stats = &entry.stats;
    let (memory, route) = (entry.point.memory.name(), entry.point.route.words());
    ChartBar {
        caption: route.to_owned(),
        value: stats.median_ns as f64,
        style: SeriesStyle::of(entry.point.memory),
        soft: entry.point.route == Route::D2h,
        label: duration(stats.median_ns),
        tooltip: Tooltip {
            title: format!("{}, {memory} {route}", short_size(entry.point.bytes)),
            rows: match stats.is_single() {
                true => vec![TooltipRow::plain("time", duration(stats.median_ns))],
                false => vec![
                    TooltipRow::plain("median", duration(stats.median_ns)),
                    TooltipRow::plain("shortest", duration(stats.best_ns)),
                    TooltipRow::plain("5% – 95%", stats.time_range()),
                    TooltipRow::plain("copies", stats.samples.to_string()),
                ],
            },
        },
    }
}
