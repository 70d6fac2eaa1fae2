//! A chart as a page.

mod data;
mod page;
mod table;

use std::io;

use super::{Chart, Exporter};

/// One page to open in a browser, with or without a network: zoom, pan, and hover over a span to see
/// all about it. Works by mouse, touch and keyboard, follows the viewer's choice of a light or a dark
/// look, and says in a table what the picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Html;

impl Exporter for Html {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        page::write(chart, out)
    }
}
