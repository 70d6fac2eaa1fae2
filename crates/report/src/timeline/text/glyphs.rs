//! Characters and colours of the terminal.

use super::Text;
use super::cells::Cell;
use crate::timeline::SpanKind;
use crate::timeline::layout::palette::terminal;
use crate::timeline::layout::shade::Shade;
use crate::timeline::layout::words::clean;

const RESET: &str = "\u{1b}[0m";

impl Text {
    /// The character of a cell.
    pub(super) fn glyph(&self, cell: Cell) -> char {
        match cell {
            Cell::Work(kind, shade) => {
                let [strong, soft] = self.pair(kind);
                match shade {
                    Shade::Strong => strong,
                    Shade::Soft => soft,
                }
            }
            Cell::Idle => self.pick('·', '.'),
            Cell::Over => ' ',
        }
    }

    /// Letters are the first ones of: host work, staging, upload, kernel, download, memset, copy.
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

    /// The first, or the second where only ASCII is wanted.
    pub(super) fn pick<T>(&self, unicode: T, ascii: T) -> T {
        if self.ascii { ascii } else { unicode }
    }

    /// Text from outside, fit for the terminal.
    pub(super) fn words(&self, text: &str) -> String {
        let text = clean(text);
        if !self.ascii {
            return text;
        }
        text.replace('µ', "u")
            .chars()
            .map(|c| if c.is_ascii() { c } else { '?' })
            .collect()
    }

    /// Cells in a row, with their colours.
    pub(super) fn paint(&self, cells: &[Cell]) -> String {
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

    /// Text that stands out.
    pub(super) fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}{RESET}")
        } else {
            text.to_owned()
        }
    }
}

fn colour_code(cell: Cell) -> Option<u8> {
    match cell {
        Cell::Work(kind, shade) => Some(terminal(kind, shade)),
        Cell::Idle => Some(240),
        Cell::Over => None,
    }
}
