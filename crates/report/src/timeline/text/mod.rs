//! A chart in the terminal.

mod cells;
mod frame;

use std::io;

use self::cells::TimeCell;
use self::frame::Frame;
use super::palette::terminal_colour;
use super::rows::Shade;
use super::{Chart, Exporter, SpanKind};
use crate::format::sanitize;

const RESET: &str = "\u{1b}[0m";

/// A Gantt chart of characters: one row per track, one column per slice of time.
///
/// Of overlapping spans, the later one is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Columns of the terminal, clamped to [`Text::WIDTH_MIN`] and [`Text::WIDTH_MAX`].
    pub width: usize,
    /// Whether to use colours (ANSI escape sequences).
    pub colour: bool,
    /// Whether to use ASCII only.
    pub ascii: bool,
}

impl Text {
    /// The narrowest chart.
    pub const WIDTH_MIN: usize = 40;
    /// The widest chart.
    pub const WIDTH_MAX: usize = 1000;

    fn glyph(&self, cell: TimeCell) -> char {
        match cell {
            TimeCell::Work(kind, shade) => {
                let [strong, soft] = self.pair(kind);
                if shade == Shade::Strong { strong } else { soft }
            }
            TimeCell::Idle => self.pick('·', '.'),
            TimeCell::Over => ' ',
        }
    }

    /// Letters are the initials of: host work, staging, upload, kernel, download, memset, copy.
    fn pair(&self, kind: SpanKind) -> [char; 2] {
        let (blocks, letters) = match kind {
            SpanKind::HostWork => (['▞', '▚'], ['H', 'h']),
            SpanKind::Staging => (['▛', '▟'], ['S', 's']),
            SpanKind::HostToDevice => (['█', '▆'], ['U', 'u']),
            SpanKind::Kernel => (['▓', '▒'], ['K', 'k']),
            SpanKind::DeviceToHost => (['▄', '▂'], ['D', 'd']),
            SpanKind::Memset => (['▀', '▔'], ['M', 'm']),
            SpanKind::DeviceToDevice => (['▌', '▐'], ['C', 'c']),
            SpanKind::Wait => (['╌', '╌'], ['-', '-']),
        };
        self.pick(blocks, letters)
    }

    /// The first, or the second in ASCII mode.
    fn pick<T>(&self, unicode: T, ascii: T) -> T {
        if self.ascii { ascii } else { unicode }
    }

    /// External text, made safe for the terminal.
    fn printable(&self, text: &str) -> String {
        let text = sanitize(text);
        if !self.ascii {
            return text;
        }
        text.replace('µ', "u")
            .chars()
            .map(|c| if c.is_ascii() { c } else { '?' })
            .collect()
    }

    /// Cells of a row, with colours.
    fn paint(&self, cells: &[TimeCell]) -> String {
        let mut row = String::new();
        for run in cells.chunk_by(|a, b| colour_code(*a) == colour_code(*b)) {
            let glyphs: String = run.iter().map(|cell| self.glyph(*cell)).collect();
            match colour_code(run[0]) {
                Some(code) if self.colour => {
                    row.push_str(&format!("\u{1b}[38;5;{code}m{glyphs}{RESET}"));
                }
                _ => row.push_str(&glyphs),
            }
        }
        row
    }

    fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}{RESET}")
        } else {
            text.to_owned()
        }
    }
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

fn colour_code(cell: TimeCell) -> Option<u8> {
    match cell {
        TimeCell::Work(kind, shade) => Some(terminal_colour(kind, shade)),
        TimeCell::Idle => Some(240),
        TimeCell::Over => None,
    }
}
