//! A chart as a page.

use std::collections::{BTreeSet, HashMap};
use std::io;

use serde_json::{Value, json};

use super::palette::colour;
use super::rows::{Shade, ShadedSpan, TrackRow, rows};
use super::{Chart, Exporter, SHADES_NOTE, SpanKind, Timeline, Track};
use crate::Environment;
use crate::format::{duration, percent, speedup_label};
use crate::markup::escape;
use crate::page::{self, Page, TableCell};
use crate::text_layout::sanitize;

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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Html {
    /// What made the page.
    pub environment: Environment,
}

impl Exporter for Html {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        let page = Page {
            title: &chart.title,
            origin: &chart.origin,
            environment: &self.environment,
            styles: &[STYLE],
            header: &legend(chart),
            body: &format!("{}{}", timelines(chart), table(chart)),
            data: &data(chart),
            scripts: &SCRIPTS,
        };
        out.write_all(page.html().as_bytes())
    }
}

fn legend(chart: &Chart) -> String {
    let item = |kind: SpanKind| {
        let [strong, soft] = Shade::ALL.map(|shade| colour(kind, shade).hex());
        let name = kind.name();
        format!(
            "<li><i style=\"background:{strong}\"></i><i style=\"background:{soft}\"></i>{name}</li>\n"
        )
    };
    let items: String = chart.kinds().into_iter().map(item).collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<ul class=\"legend\">\n{items}<li class=\"dim\">{SHADES_NOTE}</li>\n</ul>\n")
}

fn timelines(chart: &Chart) -> String {
    let runs = chart.timelines.iter();
    let runs: String = runs.map(|timeline| section(chart, timeline)).collect();
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

fn section(chart: &Chart, timeline: &Timeline) -> String {
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
    let caption = "Total times, speed-ups over the first run, and busy shares of the tracks";
    page::table(
        "figures",
        caption,
        &columns,
        chart.timelines.iter().map(row),
    )
}

/// The data that the scripts draw.
fn data(chart: &Chart) -> String {
    let mut labels = Labels::default();
    let runs = chart.timelines.iter();
    let runs: Vec<Value> = runs.map(|timeline| run(timeline, &mut labels)).collect();
    let data = json!({
        "longest_ns": chart.longest_ns(),
        "kinds": SpanKind::ALL.map(kind),
        "labels": labels.list,
        "timelines": runs,
    });
    data.to_string()
}

fn kind(kind: SpanKind) -> Value {
    let colours = Shade::ALL.map(|shade| colour(kind, shade));
    json!({
        "name": kind.name(),
        "fills": colours.map(|colour| colour.hex()),
        "inks": colours.map(|colour| colour.ink().hex()),
        "thin": kind == SpanKind::Wait,
    })
}

fn run<'a>(timeline: &'a Timeline, labels: &mut Labels<'a>) -> Value {
    let row = |row: TrackRow<'a>| {
        json!({
            "name": row.name.long,
            "short": row.name.short,
            "busy": percent(timeline.busy_share(row.track)),
            "lanes": row.lanes.len(),
            "spans": spans(&row.lanes, labels),
        })
    };
    let rows: Vec<Value> = rows(timeline).into_iter().map(row).collect();
    json!({
        "name": timeline.name(),
        "total_ns": timeline.total_ns(),
        "rows": rows,
    })
}

/// In order of their start. An array each, not an object, since there may be many; `span()` in `data.js`
/// names the elements.
fn spans<'a>(lanes: &[Vec<ShadedSpan<'a>>], labels: &mut Labels<'a>) -> Vec<Value> {
    let lanes = lanes.iter().enumerate();
    let mut spans: Vec<(usize, &ShadedSpan<'a>)> = lanes
        .flat_map(|(lane, spans)| spans.iter().map(move |span| (lane, span)))
        .collect();
    spans.sort_by_key(|(_, shaded)| shaded.span.start_ns);
    let array = |(lane, shaded): (usize, &ShadedSpan<'a>)| {
        let span = shaded.span;
        json!([
            lane,
            span.kind as usize,
            shaded.shade as usize,
            labels.index(&span.label),
            span.stream,
            span.chunk,
            span.bytes,
            span.start_ns,
            span.duration_ns(),
        ])
    };
    spans.into_iter().map(array).collect()
}

/// Each label once; spans refer to it by index.
#[derive(Default)]
struct Labels<'a> {
    list: Vec<String>,
    indices: HashMap<&'a str, usize>,
}

impl<'a> Labels<'a> {
    fn index(&mut self, label: &'a str) -> usize {
        *self.indices.entry(label).or_insert_with(|| {
            self.list.push(sanitize(label).trim().to_owned());
            self.list.len() - 1
        })
    }
}
