//! A sweep as a page.

use super::Bench;
use super::plots::{TITLE, heading};
use crate::Route;
use crate::format::amount;
use crate::markup::escape;
use crate::page::{Cell, FIGURES_STYLE, Page, TIPS_SCRIPT, Table, Tip, notes, section, tips_json};
use crate::plot::figures::{range, rate, time_range};
use crate::plot::{NARROW, Scale, WIDE, style};
use crate::timeline::layout::words::duration;

/// Chooses between the drawings of one scale and those of the other, without a script.
const SCALES: &str = "\
<fieldset class=\"choice\">\n<legend>Scale</legend>\n\
<label><input type=\"radio\" name=\"scale\" checked> linear</label>\n\
<label><input type=\"radio\" name=\"scale\" id=\"log\"> logarithmic</label>\n</fieldset>\n";

impl Bench {
    /// One page to open in a browser, with or without a network: bandwidth over size, a plot a
    /// direction, and what the smallest copy takes. Pointing at a plot, or the arrow keys on it, show
    /// the exact figures; tables have them too. Follows the viewer's choice of a light or a dark look.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut tips = Vec::new();
        let mut body = "<main>\n".to_owned();
        for route in self.routes() {
            body.push_str(&self.route_section(route, &mut tips));
        }
        body.push_str(&self.latency_section(&mut tips));
        for route in self.routes() {
            body.push_str(&self.html_table(route));
        }
        body.push_str(&self.html_latencies());
        body.push_str("</main>\n");
        let page = Page {
            title: TITLE,
            origin: &self.origin,
            styles: &[&style::sheet(), FIGURES_STYLE],
            header: &self.header(),
            body: &body,
            data: &tips_json(&tips),
            scripts: &[TIPS_SCRIPT],
        };
        page.html()
    }

    fn header(&self) -> String {
        let mut html = String::new();
        for warning in self.warnings() {
            html.push_str(&format!("<p class=\"warning\">{}</p>\n", escape(&warning)));
        }
        html.push_str(&format!("<p class=\"dim\">{}</p>\n", escape(&self.about())));
        html.push_str(&notes(&self.notes));
        if !self.lines.is_empty() {
            html.push_str(SCALES);
        }
        html
    }

    fn route_section(&self, route: Route, tips: &mut Vec<Tip>) -> String {
        let name = heading(route.words());
        let label = format!("Bandwidth over size, {}", route.words());
        let mut drawings = String::new();
        for (scale, scale_class) in [(Scale::Linear, "linear"), (Scale::Log, "log")] {
            for (canvas, width_class, marks) in [(WIDE, "wide", 8), (NARROW, "narrow", 5)] {
                let canvas = canvas.tips_from(tips.len());
                let drawing = self.plot(route, scale, marks).draw(&canvas);
                let class = format!("{width_class} {scale_class}");
                drawings.push_str(&drawing.inline(&canvas, &class, &label));
            }
        }
        let stops = self.plot(route, Scale::Linear, 8).stops;
        tips.extend(stops.into_iter().map(|stop| stop.tip));
        let best = self.fastest(route).map_or_else(String::new, |line| {
            format!(
                "at most {} GB/s: {}, {}",
                rate(line.figure.gb_per_s),
                line.memory.name(),
                amount(line.bytes)
            )
        });
        section(&name, &best, &label, &drawings)
    }

    fn latency_section(&self, tips: &mut Vec<Tip>) -> String {
        let Some(chart) = self.latency_chart() else {
            return String::new();
        };
        let heading = self.latency_heading();
        let mut drawings = String::new();
        for (canvas, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            let canvas = canvas.tips_from(tips.len());
            drawings.push_str(&chart.draw(&canvas).inline(&canvas, class, &heading));
        }
        tips.extend(chart.tips());
        section(&heading, "shorter is better", &heading, &drawings)
    }

    fn html_table(&self, route: Route) -> String {
        let kinds = self.kinds(route);
        let mut columns = vec!["Size".to_owned()];
        columns.extend(kinds.iter().map(|memory| memory.name().to_owned()));
        let cell = |memory, bytes| match self.line(route, memory, bytes) {
            None => "–".into(),
            Some(line) => Cell {
                text: format!(
                    "{}{}",
                    if line.noisy { "noisy " } else { "" },
                    rate(line.figure.gb_per_s)
                ),
                below: range(route.moved(bytes), &line.figure),
            },
        };
        let row = |bytes: u64| {
            let cells = kinds.iter().map(|memory| cell(*memory, bytes)).collect();
            (amount(bytes), cells)
        };
        let caption = format!(
            "{}: GB/s by the median, and from the 5th to the 95th percentile",
            heading(route.words())
        );
        let table = Table {
            id: &format!("figures-{}", route.name()),
            caption: &caption,
            columns,
            rows: self.sizes(route).into_iter().map(row).collect(),
        };
        table.html()
    }

    fn html_latencies(&self) -> String {
        if self.latencies.is_empty() {
            return String::new();
        }
        let columns = [
            "Memory",
            "Direction",
            "Size",
            "Median",
            "Shortest",
            "5% – 95%",
            "Copies",
        ];
        let rows = self.latencies.iter().map(|entry| {
            let figure = &entry.figure;
            let cells = [
                entry.route.words().to_owned(),
                amount(entry.bytes),
                duration(figure.median_ns),
                duration(figure.best_ns),
                time_range(figure),
                figure.samples.to_string(),
            ];
            (entry.memory.name().to_owned(), cells.map(Cell::from).into())
        });
        let table = Table {
            id: "figures-latency",
            caption: &self.latency_heading(),
            columns: columns.map(str::to_owned).into(),
            rows: rows.collect(),
        };
        table.html()
    }
}
