//! The frame of every HTML page: one file that loads nothing else, follows the viewer's light or dark
//! theme, and states first where its figures come from.
//!
//! ```text
//!  Page ── head, style, title, origin, body, script
//!    notes    what the reader should know
//!    section  a heading and a picture
//!    table    the figures as digits, also for screen readers
//!    tooltip  details of a picture's parts, by pointer or keyboard
//! ```

mod table;
mod tooltip;

use std::io;

pub(crate) use self::table::{HtmlTable, TableCell};
pub(crate) use self::tooltip::{Tooltip, TooltipRow};
use crate::Origin;
use crate::markup::{escape, paragraph};

const STYLE: &str = include_str!("style.css");

/// These run before all other scripts.
const FIRST_SCRIPTS: [&str; 2] = [include_str!("errors.js"), include_str!("hover.js")];

/// Shows the tooltips of a page's pictures.
const TOOLTIPS_SCRIPT: &str = include_str!("tooltips.js");

/// The style of pages with headings, pictures and tables.
const FIGURES_STYLE: &str = include_str!("figures.css");

/// Nothing may be loaded from anywhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// What differs from page to page.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) origin: &'a Origin,
    /// Style sheets in addition to the common one.
    pub(crate) styles: &'a [&'a str],
    /// Markup below the title and the origin.
    pub(crate) header: &'a str,
    pub(crate) body: &'a str,
    /// JSON for the scripts.
    pub(crate) data: &'a str,
    /// In the order of their dependencies.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    pub(crate) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let title = escape(self.title);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}"
        )?;
        for style in self.styles {
            out.write_all(style.as_bytes())?;
        }
        write!(
            out,
            "</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{}{}</header>\n{}\
             <div id=\"hover\" hidden></div>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n\
             <script>\n\"use strict\";\n",
            origin_line(self.origin),
            self.header,
            self.body,
            // No text in the data may end its element.
            self.data.replace('<', "\\u003c"),
        )?;
        for script in FIRST_SCRIPTS.iter().chain(self.scripts) {
            out.write_all(script.as_bytes())?;
        }
        writeln!(out, "</script>\n</body>\n</html>")
    }
}

/// A page of plots and tables: `plot_style` is the style sheet of its plots, `body` its markup.
pub(crate) fn figures_page(
    title: &str,
    origin: &Origin,
    plot_style: &str,
    header: &str,
    body: &str,
    tooltips: &[Tooltip],
) -> String {
    let page = Page {
        title,
        origin,
        styles: &[plot_style, FIGURES_STYLE],
        header,
        body: &format!("<main>\n{body}</main>\n"),
        data: &tooltip::to_json(tooltips),
        scripts: &[TOOLTIPS_SCRIPT],
    };
    let mut out = Vec::new();
    page.write(&mut out).expect("writing to memory succeeds");
    String::from_utf8(out).expect("only text was written")
}

/// Anything but a measurement is highlighted.
fn origin_line(origin: &Origin) -> String {
    let class = match origin {
        Origin::Measured { .. } => "measured",
        Origin::Simulated { .. } => "simulated",
        Origin::Computed { .. } => "computed",
    };
    paragraph(&format!("origin {class}"), &origin.line())
}

/// Notes as a list; empty without notes.
pub(crate) fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let item = |note: &String| format!("<li>{}</li>\n", escape(note));
    let items: String = notes.iter().map(item).collect();
    format!("<ul class=\"notes\">\n{items}</ul>\n")
}

/// A heading with a remark, and drawings of which the window's width selects one. `label` describes
/// them in words.
pub(crate) fn section(heading: &str, remark: &str, label: &str, drawings: &str) -> String {
    format!(
        "<section>\n<h2>{} <span class=\"dim\">{}</span></h2>\n\
         <figure tabindex=\"0\" role=\"group\" aria-label=\"{}. Use the arrow keys to step through the figures.\">\n\
         {drawings}</figure>\n</section>\n",
        escape(heading),
        escape(remark),
        escape(label)
    )
}
