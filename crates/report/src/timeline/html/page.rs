//! The page around the script.

use std::io;

use super::{data, table};
use crate::markup::escape;
use crate::page::Page;
use crate::timeline::layout::palette::colour;
use crate::timeline::layout::shade::Shade;
use crate::timeline::layout::words::{duration, times};
use crate::timeline::{Chart, Timeline};

const STYLE: &str = include_str!("page/style.css");

/// In the order in which they build on each other.
const SCRIPTS: [&str; 7] = [
    include_str!("page/data.js"),
    include_str!("page/figures.js"),
    include_str!("page/view.js"),
    include_str!("page/draw.js"),
    include_str!("page/hover.js"),
    include_str!("page/input.js"),
    include_str!("page/start.js"),
];

pub(super) fn write(chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
    let page = Page {
        title: &chart.title,
        origin: &chart.origin,
        styles: &[STYLE],
        header: &legend(chart),
        body: &format!("{}{}", charts(chart), table::html(chart)),
        data: &data::json(chart),
        scripts: &SCRIPTS,
    };
    page.write(out)
}

fn legend(chart: &Chart) -> String {
    let kinds = chart.kinds();
    if kinds.is_empty() {
        return String::new();
    }
    let mut html = "<ul class=\"legend\">\n".to_owned();
    for kind in kinds {
        let [strong, soft] = [Shade::Strong, Shade::Soft].map(|shade| colour(kind, shade).hex());
        html.push_str(&format!(
            "<li><i style=\"background:{strong}\"></i><i style=\"background:{soft}\"></i>{}</li>\n",
            kind.name()
        ));
    }
    html.push_str("<li class=\"dim\">shades tell chunks apart</li>\n</ul>\n");
    html
}

fn charts(chart: &Chart) -> String {
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
         <p id=\"help\" class=\"dim\">Wheel or pinch zooms, dragging pans, a double click shows all. \
         Keys: + and \u{2212} zoom, \u{2190} and \u{2192} pan, 0 shows all.</p>\n</main>\n"
    )
}

fn run(chart: &Chart, timeline: &Timeline) -> String {
    let name = escape(timeline.name());
    let total = duration(timeline.total_ns());
    let speedup = times(chart.speedup(timeline));
    format!(
        "<section>\n<h2><span>{name}</span><span class=\"total\">{total}</span>\
         <span class=\"speedup\">{speedup}</span></h2>\n\
         <canvas class=\"run\" role=\"img\" aria-label=\"{name}: {total}. The table below has the figures.\"></canvas>\n\
         </section>\n"
    )
}
