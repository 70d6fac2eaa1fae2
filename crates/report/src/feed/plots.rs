//! The pictures of a feed: its rate and its waits over time, and what each part could do alone.

use super::{Feed, FeedInterval};
use crate::format::duration;
use crate::page::{Tooltip, TooltipRow, section};
use crate::plot::{
    Axis, BarChart, BarGroup, ChartBar, Line, LinePlot, LinePoint, LineStop, NARROW, SeriesStyle,
    WIDE,
};

/// A part that could do this many times what was delivered would flatten the rate over time.
const SHOWN_MAX: f64 = 3.0;

/// One long wait must not flatten all others.
const WAIT_MAX: f64 = 4.0;

/// A part of the feed, and what it could do alone, in samples a second.
#[derive(Clone, Copy)]
struct PartRate {
    name: &'static str,
    style: SeriesStyle,
    samples_per_s: f64,
}

impl Feed {
    /// The rate over time, beside what the parts could do alone. Empty without times.
    pub(super) fn rate_section(&self, tooltips: &mut Vec<Tooltip>) -> String {
        if self.times().is_empty() {
            return String::new();
        }
        let label = "Samples a second over time";
        let (heading, remark) = ("Rate over time", "higher is better");
        let plot = |ticks| self.rate_plot(ticks);
        line_section([heading, remark, label], &plot, tooltips)
    }

    /// How long the consumer waited. Empty without times, or if it never did.
    pub(super) fn wait_section(&self, tooltips: &mut Vec<Tooltip>) -> String {
        if self.times().iter().all(|interval| interval.wait_ns == 0) {
            return String::new();
        }
        let label = "Time that the consumer waited for a batch, over time";
        let (heading, remark) = (
            "Wait for a batch",
            "the line is the mean, the band reaches to the longest; lower is better",
        );
        let plot = |ticks| self.wait_plot(ticks);
        line_section([heading, remark, label], &plot, tooltips)
    }

    /// What was delivered, and what each part could do alone. Empty without a rate.
    pub(super) fn parts_section(&self, tooltips: &mut Vec<Tooltip>) -> String {
        let Some(delivered) = self.delivered() else {
            return String::new();
        };
        let parts = [vec![delivered], self.parts()].concat();
        let top = parts.iter().map(|part| part.samples_per_s);
        let (scale, _, prefix) = scale(top.clone().fold(0.0, f64::max));
        let bar = |part: &PartRate| BarGroup {
            name: part.name.to_owned(),
            note: String::new(),
            bars: vec![ChartBar {
                caption: String::new(),
                value: part.samples_per_s / scale,
                style: part.style,
                soft: false,
                label: short_rate(part.samples_per_s),
                tooltip: Tooltip {
                    title: part.name.to_owned(),
                    rows: vec![part.row()],
                },
            }],
        };
        let chart = BarChart {
            origin: &self.origin,
            axis: Axis::numbers(top.fold(0.0, f64::max) / scale, 5),
            unit: prefix,
            note_title: "",
            groups: parts.iter().map(bar).collect(),
            limit: None,
        };
        let label = "Samples a second, delivered and by each part alone";
        let remark = "samples a second; the slowest part limits what is delivered";
        chart.section("Each part alone", remark, label, tooltips)
    }

    /// The intervals if there are enough to show a course.
    fn times(&self) -> &[FeedInterval] {
        match self.intervals.len() {
            0 | 1 => &[],
            _ => &self.intervals,
        }
    }

    fn delivered(&self) -> Option<PartRate> {
        self.samples_per_s.map(|samples_per_s| PartRate {
            name: "delivered",
            style: SeriesStyle::Blue,
            samples_per_s,
        })
    }

    /// The parts whose rate is known.
    fn parts(&self) -> Vec<PartRate> {
        let samples = self.done.samples as f64;
        let part = |name, style, samples: f64, ns: f64| {
            let samples_per_s = samples * 1e9 / ns;
            (samples_per_s.is_finite() && samples_per_s > 0.0).then_some(PartRate {
                name,
                style,
                samples_per_s,
            })
        };
        let copied = samples * self.link.copy_bytes as f64 / self.done.moved_bytes.max(1) as f64;
        let link_ns = self.link.copy_ns as f64;
        let link = part("link alone", SeriesStyle::Vermilion, copied, link_ns);
        let kernel = self.kernel.and_then(|kernel| {
            let share = kernel.count as f64 / self.done.batches.max(1) as f64;
            let busy_ns = kernel.busy_ns as f64;
            part("kernel alone", SeriesStyle::Green, samples * share, busy_ns)
        });
        // Real threads do not read by the simulated clock.
        let reading = self.origin.is_measured().then(|| {
            let ns = self.host.read_ns as f64 / self.host.threads.max(1) as f64;
            part("reading alone", SeriesStyle::Ochre, samples, ns)
        });
        [link, kernel, reading.flatten()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn rate_plot(&self, ticks: usize) -> LinePlot<'_> {
        let times = self.times();
        let rates = times.iter().map(FeedInterval::samples_per_s);
        let most = rates.fold(0.0, f64::max);
        let parts = self.parts().into_iter();
        let parts: Vec<PartRate> = parts
            .filter(|part| part.samples_per_s <= most * SHOWN_MAX)
            .collect();
        let top = parts.iter().map(|part| part.samples_per_s);
        let top = top.fold(most, f64::max);
        let (scale, unit, _) = scale(top);
        let point = |x: f64, rate: f64| exact(x, rate / scale);
        let delivered = times
            .iter()
            .map(|interval| point(interval.end_ns as f64, interval.samples_per_s()));
        let ends = [times.first(), times.last()].map(|end| end.map_or(0.0, |it| it.end_ns as f64));
        let level = |part: &PartRate| Line {
            style: part.style,
            name: part.name.to_owned(),
            last: short_rate(part.samples_per_s),
            points: ends.map(|x| point(x, part.samples_per_s)).to_vec(),
        };
        let mut lines: Vec<Line> = parts.iter().map(level).collect();
        lines.push(Line {
            style: SeriesStyle::Blue,
            name: "delivered".to_owned(),
            last: self.samples_per_s.map_or_else(String::new, mean_rate),
            points: delivered.collect(),
        });
        LinePlot {
            origin: &self.origin,
            x: self.time_axis(ticks),
            y: Axis::numbers(top / scale, 6),
            unit,
            lines,
            stops: self.stops(|interval| {
                let part = PartRate {
                    name: "delivered",
                    style: SeriesStyle::Blue,
                    samples_per_s: interval.samples_per_s(),
                };
                std::iter::once(&part)
                    .chain(&parts)
                    .map(PartRate::row)
                    .collect()
            }),
        }
    }

    fn wait_plot(&self, ticks: usize) -> LinePlot<'_> {
        let times = self.times();
        let mean_ns = times.iter().map(FeedInterval::mean_wait_ns);
        let mean_ns = mean_ns.max().unwrap_or(0) as f64;
        let longest_ns = times.iter().map(|interval| interval.wait_max_ns);
        let longest_ns = longest_ns.max().unwrap_or(0) as f64;
        let top_ns = longest_ns.min(mean_ns * WAIT_MAX).max(1.0) as u64;
        let point = |interval: &FeedInterval| LinePoint {
            x: interval.end_ns as f64,
            low: 0.0,
            median: interval.mean_wait_ns() as f64,
            high: interval.wait_max_ns as f64,
            noisy: false,
        };
        let batches: u64 = times.iter().map(|interval| interval.batches).sum();
        let wait_ns = times.iter().map(|interval| interval.wait_ns);
        let wait_ns = wait_ns.fold(0, u64::saturating_add);
        LinePlot {
            origin: &self.origin,
            x: self.time_axis(ticks),
            y: Axis::times(top_ns, 5),
            unit: "",
            lines: vec![Line {
                style: SeriesStyle::Grey,
                name: "consumer".to_owned(),
                last: format!("mean {}", duration(wait_ns / batches.max(1))),
                points: times.iter().map(point).collect(),
            }],
            stops: self.stops(|interval| {
                vec![
                    TooltipRow::plain("mean wait", duration(interval.mean_wait_ns())),
                    TooltipRow::plain("longest wait", duration(interval.wait_max_ns)),
                ]
            }),
        }
    }

    fn time_axis(&self, ticks: usize) -> Axis {
        let end_ns = self.times().last().map_or(0, |last| last.end_ns);
        Axis::times(end_ns, ticks)
    }

    fn stops(&self, rows: impl Fn(&FeedInterval) -> Vec<TooltipRow>) -> Vec<LineStop> {
        let stop = |interval: &FeedInterval| {
            let (start, end) = (duration(interval.start_ns), duration(interval.end_ns));
            let mut rows = rows(interval);
            rows.push(TooltipRow::plain("batches", interval.batches.to_string()));
            LineStop {
                x: interval.end_ns as f64,
                tooltip: Tooltip {
                    title: format!("{start} to {end}"),
                    rows,
                },
            }
        };
        self.times().iter().map(stop).collect()
    }
}

impl PartRate {
    fn row(&self) -> TooltipRow {
        TooltipRow {
            colour: Some(self.style.class()),
            name: self.name.to_owned(),
            cells: vec![format!("{:.0} samples/s", self.samples_per_s)],
        }
    }
}

/// A section with a plot for wide and for narrow windows: heading, remark and label. Appends its tooltips.
fn line_section<'a>(
    texts: [&str; 3],
    plot: &dyn Fn(usize) -> LinePlot<'a>,
    tooltips: &mut Vec<Tooltip>,
) -> String {
    let [heading, remark, label] = texts;
    let drawings = [(WIDE, "wide", 8), (NARROW, "narrow", 4)].map(|(canvas, class, ticks)| {
        let canvas = canvas.tooltips_from(tooltips.len());
        plot(ticks).draw(&canvas).inline(&canvas, class, label)
    });
    tooltips.extend(plot(8).stops.into_iter().map(|stop| stop.tooltip));
    section(heading, remark, label, &drawings.concat())
}

/// A point without a range.
fn exact(x: f64, value: f64) -> LinePoint {
    LinePoint {
        x,
        low: value,
        median: value,
        high: value,
        noisy: false,
    }
}

/// What to divide rates by, the unit of the quotient, and its prefix alone.
fn scale(top: f64) -> (f64, &'static str, &'static str) {
    match top {
        top if top >= 1e7 => (1e6, "million samples/s", "M"),
        top if top >= 1e4 => (1e3, "thousand samples/s", "k"),
        _ => (1.0, "samples/s", ""),
    }
}

fn mean_rate(samples_per_s: f64) -> String {
    format!("mean {}", short_rate(samples_per_s))
}

/// At most four digits, such as `869k`.
fn short_rate(samples_per_s: f64) -> String {
    match samples_per_s {
        rate if rate >= 1e7 => format!("{:.1}M", rate / 1e6),
        rate if rate >= 1e5 => format!("{:.0}k", rate / 1e3),
        rate if rate >= 1e4 => format!("{:.1}k", rate / 1e3),
        rate if rate >= 100.0 => format!("{rate:.0}"),
        rate => format!("{rate:.1}"),
    }
}
