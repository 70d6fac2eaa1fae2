//! The page around the script.

use std::io;

use super::{data, table};
use crate::Origin;
use crate::timeline::layout::markup::escape;
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

/// Nothing may be fetched from anywhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

pub(super) fn write(chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
    let title = escape(&chart.title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n"
    )?;
    write_origin(&chart.origin, out)?;
    write_legend(chart, out)?;
    writeln!(out, "</header>")?;
    write_charts(chart, out)?;
    table::write(chart, out)?;
    writeln!(out, "<div id=\"hover\" hidden></div>")?;
    write!(
        out,
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n\"use strict\";\n",
        data::json(chart)
    )?;
    for script in SCRIPTS {
        out.write_all(script.as_bytes())?;
    }
    writeln!(out, "</script>\n</body>\n</html>")
}

fn write_origin(origin: &Origin, out: &mut dyn io::Write) -> io::Result<()> {
    let class = match origin {
        Origin::Measured { .. } => "measured",
        Origin::Simulated { .. } => "simulated",
        Origin::Computed { .. } => "computed",
    };
    let line = escape(&origin.line());
    writeln!(out, "<p class=\"origin {class}\">{line}</p>")
}

fn write_legend(chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
    let kinds = chart.kinds();
    if kinds.is_empty() {
        return Ok(());
    }
    writeln!(out, "<ul class=\"legend\">")?;
    for kind in kinds {
        let [strong, soft] = [Shade::Strong, Shade::Soft].map(|shade| colour(kind, shade).hex());
        writeln!(
            out,
            "<li><i style=\"background:{strong}\"></i><i style=\"background:{soft}\"></i>{}</li>",
            kind.name()
        )?;
    }
    writeln!(
        out,
        "<li class=\"dim\">shades tell chunks apart</li>\n</ul>"
    )
}

fn write_charts(chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
    write!(
        out,
        "<main id=\"charts\" tabindex=\"0\" role=\"group\" aria-label=\"Timelines\" aria-describedby=\"help\">\n\
         <div id=\"axis\">\n<div class=\"tools\">\n\
         <button type=\"button\" id=\"out\" aria-label=\"Zoom out\">\u{2212}</button>\n\
         <button type=\"button\" id=\"in\" aria-label=\"Zoom in\">+</button>\n\
         <button type=\"button\" id=\"all\">Show all</button>\n\
         <output id=\"range\"></output>\n</div>\n<canvas aria-hidden=\"true\"></canvas>\n</div>\n\
         <noscript><p>The picture needs JavaScript. The table below does not.</p></noscript>\n"
    )?;
    for timeline in &chart.timelines {
        write_run(chart, timeline, out)?;
    }
    writeln!(
        out,
        "<p id=\"help\" class=\"dim\">Wheel or pinch zooms, dragging pans, a double click shows all. \
         Keys: + and \u{2212} zoom, \u{2190} and \u{2192} pan, 0 shows all.</p>\n</main>"
    )
}

fn write_run(chart: &Chart, timeline: &Timeline, out: &mut dyn io::Write) -> io::Result<()> {
    let name = escape(timeline.name());
    let total = duration(timeline.total_ns());
    let speedup = times(chart.speedup(timeline));
    writeln!(
        out,
        "<section>\n<h2><span>{name}</span><span class=\"total\">{total}</span>\
         <span class=\"speedup\">{speedup}</span></h2>\n\
         <canvas class=\"run\" role=\"img\" aria-label=\"{name}: {total}. The table below has the figures.\"></canvas>\n\
         </section>"
    )
}
