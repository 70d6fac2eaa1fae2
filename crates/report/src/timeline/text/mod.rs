//! A chart in the terminal.

mod cells;
mod frame;
mod glyphs;

use std::io;

use self::frame::Frame;
use super::{Chart, Exporter};

/// A Gantt chart made of characters: a row a track, a column a slice of time.
///
/// Where spans of a track overlap, the later one is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Columns of the terminal. Fewer than [`Text::WIDTH_MIN`] count as that many, and what is beyond
    /// [`Text::WIDTH_MAX`] is not used.
    pub width: usize,
    /// Whether to use colours, by ANSI escape sequences.
    pub colour: bool,
    /// Whether to use ASCII only.
    pub ascii: bool,
}

impl Text {
    /// The narrowest chart.
    pub const WIDTH_MIN: usize = 40;
    /// The widest chart.
    pub const WIDTH_MAX: usize = 1000;
}

impl Default for Text {
    /// 80 columns, Unicode, no colours.
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
            ascii: false,
        }
    }
}

impl Exporter for Text {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        Frame::new(self, chart).write(out)
    }
}
