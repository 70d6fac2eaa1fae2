//! The frame of every HTML page: one file that loads nothing else, follows the viewer's light or dark
//! theme, and states first where its figures come from.
//!
//! ```text
//!  Page ── head, style, title, origin, body, environment, script
//!    notes    what the reader should know
//!    section  a heading and a picture
//!    table    the figures as digits, also for screen readers
//!    tooltip  details of a picture's parts, by pointer or keyboard
//! ```

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::counted;
use crate::markup::{escape, paragraph};
use crate::text_layout::sanitize;
use crate::{Environment, Origin};

const STYLE: &str = include_str!("style.css");

/// These run before all other scripts.
const FIRST_SCRIPTS: &str = concat!(include_str!("errors.js"), include_str!("hover.js"));

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
    pub(crate) environment: &'a Environment,
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
    pub(crate) fn html(&self) -> String {
        let title = escape(self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{}\
             </style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{}{}</header>\n{}{}\
             <div id=\"hover\" hidden></div>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n\
             <script>\n\"use strict\";\n{FIRST_SCRIPTS}{}</script>\n</body>\n</html>\n",
            self.styles.concat(),
            origin_line(self.origin),
            self.header,
            self.body,
            footer(self.environment),
            // No text in the data may end its element.
            self.data.replace('<', "\\u003c"),
            self.scripts.concat(),
        )
    }
}

/// A page of plots and tables: `plot_style` is the style sheet of its plots, `body` its markup.
pub(crate) fn figures_page(
    title: &str,
    origin: &Origin,
    environment: &Environment,
    plot_style: &str,
    header: &str,
    body: &str,
    tooltips: &[Tooltip],
) -> String {
    let tips = serde_json::to_string(&BTreeMap::from([("tips", tooltips)]));
    let page = Page {
        title,
        origin,
        environment,
        styles: &[plot_style, FIGURES_STYLE],
        header,
        body: &format!("<main>\n{body}</main>\n"),
        data: &tips.expect("plain data serializes"),
        scripts: &[TOOLTIPS_SCRIPT],
    };
    page.html()
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

/// What made the page; empty if nothing is known.
fn footer(environment: &Environment) -> String {
    let Environment {
        version,
        date,
        driver,
        gpu,
        cpu,
        cpus,
        system,
    } = environment.clone();
    let version = version.map(|version| format!("Pinlane {version}"));
    let cpus = cpus.map(|cpus| counted(cpus, "CPU"));
    let lines = [
        ("Made by", vec![version, date]),
        ("Device:", vec![gpu, driver]),
        ("Machine:", vec![cpu, cpus, system]),
    ];
    let lines = lines.into_iter().filter_map(|(label, parts)| {
        let known: Vec<String> = parts.into_iter().flatten().collect();
        let line = || format!("{label} {}", known.join(", "));
        (!known.is_empty()).then(|| paragraph("dim", &line()))
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => lines,
        false => format!("<footer>\n{lines}</footer>\n"),
    }
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

/// A captioned table, which scrolls on its own if the window is too narrow. Its `id` is unique in the
/// page, and its first column names the rows.
pub(crate) fn table(
    id: &str,
    caption: &str,
    columns: &[&str],
    rows: impl Iterator<Item = (String, Vec<TableCell>)>,
) -> String {
    let column = |name: &&str| format!("<th scope=\"col\">{}</th>", escape(name));
    let columns: String = columns.iter().map(column).collect();
    let row = |(name, cells): (String, Vec<TableCell>)| {
        let cells: String = cells.iter().map(TableCell::html).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&name))
    };
    let rows: String = rows.map(row).collect();
    format!(
        "<p id=\"{id}\" class=\"caption dim\">{}</p>\n\
         <div class=\"table\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}\">\n\
         <table aria-labelledby=\"{id}\">\n<thead><tr>{columns}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        escape(caption)
    )
}

/// Plain text, and smaller text below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    pub(crate) below: String,
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        let (text, below) = (text.into(), String::new());
        Self { text, below }
    }
}

impl TableCell {
    fn html(&self) -> String {
        let text = escape(&self.text);
        match self.below.as_str() {
            "" => format!("<td>{text}</td>"),
            below => format!("<td>{text}<small>{}</small></td>", escape(below)),
        }
    }
}

/// A heading and a small table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Tooltip {
    pub(crate) title: String,
    pub(crate) rows: Vec<TooltipRow>,
}

/// One line of a [`Tooltip`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct TooltipRow {
    /// CSS class of its colour.
    pub(crate) colour: Option<&'static str>,
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

impl TooltipRow {
    pub(crate) fn plain(name: &str, value: impl Into<String>) -> Self {
        Self {
            colour: None,
            name: name.to_owned(),
            cells: vec![value.into()],
        }
    }
}

impl Tooltip {
    /// As plain lines, for viewers that run no scripts.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.join("  ");
            format!("\n{}: {}", sanitize(&row.name), sanitize(&cells))
        });
        std::iter::once(sanitize(&self.title)).chain(rows).collect()
    }
}
