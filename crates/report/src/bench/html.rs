//! A sweep as a page.

use super::plots::{TITLE, capitalized};
use super::{Bench, BenchLatency, BenchLine};
use crate::format::{duration, rate, short_size};
use crate::markup::paragraph;
use crate::page::{TableCell, Tooltip, figures_page, notes, section, table};
use crate::plot::{NARROW, Scale, WIDE, stylesheet};
use crate::{Environment, Route};

/// Selects the drawings of one scale without a script.
const SCALES: &str = "\
<fieldset class=\"choice\">\n<legend>Scale</legend>\n\
<label><input type=\"radio\" name=\"scale\" checked> linear</label>\n\
<label><input type=\"radio\" name=\"scale\" id=\"log\"> logarithmic</label>\n</fieldset>\n";

impl Bench {
    /// A page that works offline: bandwidth over size, one plot per direction, and the latency of the
    /// smallest copy. Pointing at a plot, or the arrow keys on it, show the exact figures; tables repeat
    /// them. Follows the viewer's light or dark theme.
    #[must_use]
    pub fn to_html(&self, environment: &Environment) -> String {
        self.html_with("", environment)
    }

    /// The page, with more markup above the plots.
    pub(super) fn html_with(&self, first: &str, environment: &Environment) -> String {
        let mut tooltips = Vec::new();
        let routes = self.routes();
        let sections = routes.iter();
        let sections = sections.map(|route| self.route_section(*route, &mut tooltips));
        let mut body = first.to_owned();
        body.extend(sections);
        if let Some(chart) = self.latency_chart() {
            let heading = self.latency_heading();
            body.push_str(&chart.section(&heading, "shorter is better", &heading, &mut tooltips));
        }
        body.extend(routes.iter().map(|route| self.html_table(*route)));
        body.push_str(&self.html_latencies());
        let (header, style) = (self.header(), stylesheet());
        figures_page(
            TITLE,
            &self.origin,
            environment,
            &style,
            &header,
            &body,
            &tooltips,
        )
    }

    fn header(&self) -> String {
        let warnings = self.warnings();
        let warnings = warnings.iter().map(|warning| paragraph("warning", warning));
        let mut html: String = warnings.collect();
        html.push_str(&paragraph("dim", &self.about()));
        html.push_str(&notes(&self.notes));
        if !self.lines.is_empty() {
            html.push_str(SCALES);
        }
        html
    }

    fn route_section(&self, route: Route, tooltips: &mut Vec<Tooltip>) -> String {
        let label = format!("Bandwidth over size, {}", route.words());
        let mut drawings = String::new();
        for (scale, scale_class) in [(Scale::Linear, "linear"), (Scale::Log, "log")] {
            for (canvas, width_class, ticks) in [(WIDE, "wide", 8), (NARROW, "narrow", 5)] {
                let canvas = canvas.tooltips_from(tooltips.len());
                let drawing = self.plot(route, scale, ticks).draw(&canvas);
                let class = format!("{width_class} {scale_class}");
                drawings.push_str(&drawing.inline(&canvas, &class, &label));
            }
        }
        let stops = self.plot(route, Scale::Linear, 8).stops;
        tooltips.extend(stops.into_iter().map(|stop| stop.tooltip));
        let best = self.fastest(route).map_or_else(String::new, |line| {
            format!(
                "up to {} GB/s: {}, {}",
                rate(line.stats.gb_per_s),
                line.point.memory.name(),
                short_size(line.point.bytes)
            )
        });
        section(&capitalized(route.words()), &best, &label, &drawings)
    }

    fn html_table(&self, route: Route) -> String {
        let kinds = self.kinds(route);
        let mut columns = vec!["Size"];
        columns.extend(kinds.iter().map(|memory| memory.name()));
        let cell = |memory, bytes| match self.line(route, memory, bytes) {
            None => "–".into(),
            Some(BenchLine { stats, noisy, .. }) => TableCell {
                text: format!(
                    "{}{}",
                    if *noisy { "noisy " } else { "" },
                    rate(stats.gb_per_s)
                ),
                below: stats.rate_range(route.moved(bytes)),
            },
        };
        let row = |bytes: u64| {
            let cells = kinds.iter().map(|memory| cell(*memory, bytes)).collect();
            (short_size(bytes), cells)
        };
        let words = capitalized(route.words());
        let figures = match self.lines.iter().all(|line| line.stats.is_single()) {
            true => "GB/s",
            false => "median GB/s, and 5th to 95th percentile",
        };
        let caption = format!("{words}: {figures}");
        let id = format!("figures-{}", route.name());
        let rows = self.sizes(route).into_iter().map(row);
        table(&id, &caption, &columns, rows)
    }

    fn html_latencies(&self) -> String {
        if self.latencies.is_empty() {
            return String::new();
        }
        let single = self.latencies.iter().all(|entry| entry.stats.is_single());
        let rows = self.latencies.iter().map(|BenchLatency { point, stats }| {
            let mut cells = vec![
                point.route.words().to_owned(),
                short_size(point.bytes),
                duration(stats.median_ns),
            ];
            if !single {
                let (shortest, range) = (duration(stats.best_ns), stats.time_range());
                cells.extend([shortest, range, stats.samples.to_string()]);
            }
            let name = point.memory.name().to_owned();
            (name, cells.into_iter().map(TableCell::from).collect())
        });
        let figures: &[&str] = match single {
            true => &["Time"],
            false => &["Median", "Shortest", "5% – 95%", "Copies"],
        };
        let columns = [&["Memory", "Direction", "Size"], figures].concat();
        table("figures-latency", &self.latency_heading(), &columns, rows)
    }
}
