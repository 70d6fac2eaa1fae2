//! The shell of every page: one file that fetches nothing, follows the viewer's choice of a light or
//! a dark look, and says first where its figures come from.
//!
//! ```text
//!  Page ── head, style, title, origin, body, script
//!    notes   what the reader should know
//!    section a heading and a picture
//!    table   figures for those who see no picture
//!    tip     what the pointer or the keyboard shows of a picture's parts
//! ```

mod notes;
mod section;
mod table;
mod tip;

use std::io;

pub(crate) use self::notes::notes;
pub(crate) use self::section::section;
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::tip::{Tip, TipRow, tips_json};
use crate::Origin;
use crate::markup::escape;

const STYLE: &str = include_str!("style.css");

/// Before all other scripts.
const FIRST_SCRIPTS: [&str; 2] = [include_str!("errors.js"), include_str!("hover.js")];

/// Shows the tips of a page's pictures.
pub(crate) const TIPS_SCRIPT: &str = include_str!("tips.js");

/// The style of pages with headings, figures and tables.
pub(crate) const FIGURES_STYLE: &str = include_str!("figures.css");

/// Nothing may be fetched from anywhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// What differs from page to page.
pub(crate) struct Page<'a> {
    /// Plain text.
    pub(crate) title: &'a str,
    pub(crate) origin: &'a Origin,
    /// Style sheets on top of the one that all pages have.
    pub(crate) styles: &'a [&'a str],
    /// Markup below the title and the origin.
    pub(crate) header: &'a str,
    /// Markup.
    pub(crate) body: &'a str,
    /// JSON for the scripts.
    pub(crate) data: &'a str,
    /// In the order in which they build on each other.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    /// The page as a text.
    pub(crate) fn html(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out)
            .expect("a vector takes whatever is written");
        String::from_utf8(out).expect("only text was written")
    }

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
            // No text of the data may end the element that it stands in.
            self.data.replace('<', "\\u003c"),
        )?;
        for script in FIRST_SCRIPTS.iter().chain(self.scripts) {
            out.write_all(script.as_bytes())?;
        }
        writeln!(out, "</script>\n</body>\n</html>")
    }
}

/// What is not measured stands out.
fn origin_line(origin: &Origin) -> String {
    let class = match origin {
        Origin::Measured { .. } => "measured",
        Origin::Simulated { .. } => "simulated",
        Origin::Computed { .. } => "computed",
    };
    let line = escape(&origin.line());
    format!("<p class=\"origin {class}\">{line}</p>\n")
}
