//! A chart as a page.

mod data;

use std::collections::BTreeSet;
use std::io;

use super::palette::colour;
use super::rows::Shade;
use super::{Chart, Exporter, Timeline, Track};
use crate::format::{duration, percent, speedup_label};
use crate::markup::escape;
use crate::page::{HtmlTable, Page, TableCell};

const STYLE: &str = include_str!("assets/style.css");

/// In the order of their dependencies.
const SCRIPTS: [&str; 7] = [
    include_str!("assets/data.js"),
    include_str!("assets/format.js"),
    include_str!("assets/view.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/hover.js"),
    include_str!("assets/input.js"),
    include_str!("assets/start.js"),
];

/// A page that works offline: zoom, pan, and hover over a span for its details, by mouse, touch or
/// keyboard. Follows the viewer's light or dark theme, and repeats the figures in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Html;

impl Exporter for Html {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        let page = Page {
            title: &chart.title,
            origin: &chart.origin,
            styles: &[STYLE],
            header: &legend(chart),
            body: &format!("{}{}", timelines(chart), table(chart)),
            data: &data::json(chart),
            scripts: &SCRIPTS,
        };
        page.write(out)
    }
}

fn legend(chart: &Chart) -> String {
    let kinds = chart.kinds();
    if kinds.is_empty() {
        return String::new();
    }
    let mut html = "<ul class=\"legend\">\n".to_owned();
    for kind in kinds {
        let [strong, soft] = Shade::ALL.map(|shade| colour(kind, shade).hex());
        html.push_str(&format!(
            "<li><i style=\"background:{strong}\"></i><i style=\"background:{soft}\"></i>{}</li>\n",
            kind.name()
        ));
    }
    let note = super::SHADES_NOTE;
    format!("{html}<li class=\"dim\">{note}</li>\n</ul>\n")
}

fn timelines(chart: &Chart) -> String {
    let runs: String = chart
        .timelines
        .iter()
        .map(|timeline| run(chart, timeline))
        .collect();
    format!(
        "<main id=\"charts\" tabindex=\"0\" role=\"group\" aria-label=\"Timelines\" aria-describedby=\"help\">\n\
         <div id=\"axis\">\n<div class=\"tools\">\n\
         <button type=\"button\" id=\"out\" aria-label=\"Zoom out\">\u{2212}</button>\n\
         <button type=\"button\" id=\"in\" aria-label=\"Zoom in\">+</button>\n\
         <button type=\"button\" id=\"all\">Show all</button>\n\
         <output id=\"range\"></output>\n</div>\n<canvas aria-hidden=\"true\"></canvas>\n</div>\n\
         <noscript><p>The picture needs JavaScript. The table below does not.</p></noscript>\n\
         {runs}\
         <p id=\"help\" class=\"dim\">Zoom with the wheel or by pinching, pan by dragging, double-click to show all. \
         Keys: + and \u{2212} zoom, \u{2190} and \u{2192} pan, 0 shows all.</p>\n</main>\n"
    )
}

fn run(chart: &Chart, timeline: &Timeline) -> String {
    let name = escape(timeline.name());
    let total = duration(timeline.total_ns());
    let speedup = speedup_label(chart.speedup(timeline));
    format!(
        "<section>\n<h2><span>{name}</span><span class=\"total\">{total}</span>\
         <span class=\"speedup\">{speedup}</span></h2>\n\
         <canvas class=\"run\" role=\"img\" aria-label=\"{name}: {total}. See the table below for all figures.\"></canvas>\n\
         </section>\n"
    )
}

fn table(chart: &Chart) -> String {
    let tracks: BTreeSet<Track> = chart.timelines.iter().flat_map(Timeline::tracks).collect();
    let tracks: Vec<Track> = tracks.into_iter().collect();
    let names = Track::names(&tracks);
    let mut columns = vec!["Run", "Total", "Speed-up"];
    columns.extend(names.iter().map(|name| name.long.as_str()));
    let row = |timeline: &Timeline| {
        let own = timeline.tracks();
        let mut cells: Vec<TableCell> = vec![
            duration(timeline.total_ns()).into(),
            speedup_label(chart.speedup(timeline)).into(),
        ];
        cells.extend(tracks.iter().map(|track| match own.contains(track) {
            true => percent(timeline.busy_share(*track)).into(),
            false => "–".into(),
        }));
        (timeline.name().to_owned(), cells)
    };
    let table = HtmlTable {
        id: "figures",
        caption: "Total times, speed-ups over the first run, and busy shares of the tracks",
        columns,
        rows: chart.timelines.iter().map(row).collect(),
    };
    table.html()
}
