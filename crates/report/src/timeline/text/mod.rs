//! A chart in the terminal.

mod cells;

use std::io;

use self::cells::{TimeCell, TimeGrid};
use super::palette::terminal_colour;
use super::rows::{Shade, by_track};
use super::{Chart, Exporter, SpanKind, Timeline, Track, TrackName};
use crate::format::{duration, percent, speedup_label};
use crate::plot::{TimeTick, time_ticks};
use crate::text_layout::{clip, display_width, padded_left, sanitize, wrap};

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
            TimeCell::Work(kind, shade) => self.pair(kind)[shade as usize],
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
        match self.colour {
            true => format!("\u{1b}[1m{text}{RESET}"),
            false => text.to_owned(),
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

/// Columns after the cells: a space and `100%`.
const BUSY_COLUMNS: usize = 5;
const TICK_COLUMNS: usize = 8;

/// Columns of a chart: names, cells between two lines, busy share.
struct Frame<'a> {
    text: Text,
    chart: &'a Chart,
    width: usize,
    name_columns: usize,
    long_names: bool,
    cells: usize,
}

impl<'a> Frame<'a> {
    fn new(text: &Text, chart: &'a Chart) -> Self {
        let width = text.width.clamp(Text::WIDTH_MIN, Text::WIDTH_MAX);
        let runs = chart.timelines.iter();
        let names: Vec<TrackName> = runs
            .flat_map(|timeline| Track::names(&timeline.tracks()))
            .collect();
        let widest = |name: fn(&TrackName) -> &str| {
            let widths = names.iter().map(|track| display_width(name(track)));
            widths.max().unwrap_or(0) + 2
        };
        let most = width * 2 / 7;
        let long = widest(|name| &name.long);
        let long_names = long <= most;
        let name_columns = match long_names {
            true => long,
            false => widest(|name| &name.short).min(most),
        };
        Self {
            text: *text,
            chart,
            width,
            name_columns,
            long_names,
            // A space and two lines.
            cells: width - name_columns - 3 - BUSY_COLUMNS,
        }
    }

    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for line in wrap(&sanitize(&self.chart.title), self.width) {
            writeln!(out, "{}", self.text.bold(&self.fit(&line, self.width)))?;
        }
        let origin = self.fit(&self.chart.origin.line(), self.width);
        writeln!(out, "{origin}\n")?;
        if !self.chart.timelines.is_empty() {
            self.write_axis(out)?;
        }
        for timeline in &self.chart.timelines {
            self.write_timeline(timeline, out)?;
        }
        self.write_legend(out)
    }

    fn grid(&self) -> TimeGrid {
        TimeGrid::new(self.cells, self.chart.longest_ns())
    }

    /// External text, in at most `most` columns.
    fn fit(&self, text: &str, most: usize) -> String {
        let ellipsis = self.text.pick('…', '~');
        clip(self.text.printable(text).trim_end(), most, ellipsis)
    }

    fn write_axis(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let indent = " ".repeat(self.name_columns + 1);
        let marks = time_ticks(self.chart.longest_ns(), (self.cells / TICK_COLUMNS).max(1));
        let labels = self.tick_labels(&marks);
        writeln!(out, "{}", format!("{indent}{labels}").trim_end())?;
        let (left, right, line, mark) = self.text.pick(('┌', '┐', '─', '┬'), ('+', '+', '-', '+'));
        let mut rule = vec![line; self.cells];
        for tick in &marks {
            rule[self.grid().cell_of(tick.at_ns)] = mark;
        }
        let rule: String = rule.into_iter().collect();
        writeln!(out, "{indent}{left}{rule}{right} busy")
    }

    /// The labels, each above its tick, as many as fit.
    fn tick_labels(&self, marks: &[TimeTick]) -> String {
        let mut labels = String::new();
        for tick in marks {
            let label = self.text.printable(&tick.label);
            let at = self.grid().cell_of(tick.at_ns) + 1;
            let used = display_width(&labels);
            let room = self.cells + 2 + BUSY_COLUMNS;
            if (used == 0 || at > used) && at + display_width(&label) <= room {
                labels.push_str(&" ".repeat(at - used));
                labels.push_str(&label);
            }
        }
        labels
    }

    fn write_timeline(&self, timeline: &Timeline, out: &mut dyn io::Write) -> io::Result<()> {
        let total = self.text.printable(&duration(timeline.total_ns()));
        let speedup = speedup_label(self.chart.speedup(timeline));
        let figures = format!("{total:>9} {speedup:>8}");
        let room = self.width.saturating_sub(display_width(&figures) + 1);
        let name = self.fit(timeline.name(), room);
        // Padded first: escape sequences have no width.
        let padding = " ".repeat(room + 1 - display_width(&name));
        let heading = format!("{}{padding}{figures}", self.text.bold(&name));
        writeln!(out, "{}", heading.trim_end())?;

        let by_track = by_track(timeline);
        let tracks: Vec<Track> = by_track.keys().copied().collect();
        let side = self.text.pick('│', '|');
        for ((track, spans), name) in by_track.iter().zip(Track::names(&tracks)) {
            let name = if self.long_names {
                name.long
            } else {
                name.short
            };
            let name = self.fit(&format!("  {name}"), self.name_columns);
            let name = padded_left(&name, self.name_columns + 1);
            let cells = self.grid().cells(spans, timeline.total_ns());
            let cells = self.text.paint(&cells);
            let busy = percent(timeline.busy_share(*track));
            writeln!(out, "{name}{side}{cells}{side} {busy:>4}")?;
        }
        Ok(())
    }

    fn write_legend(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let kinds = self.chart.kinds();
        if kinds.is_empty() {
            return Ok(());
        }
        let entries = kinds.into_iter().map(|kind| {
            let cells = Shade::ALL.map(|shade| TimeCell::Work(kind, shade));
            (cells, kind.name())
        });
        let mut used = 0;
        for (cells, name) in entries.chain([([TimeCell::Idle; 2], "idle")]) {
            let columns = cells.len() + 1 + name.len();
            let (separator, start) = match used {
                1.. if used + 3 + columns <= self.width => ("   ", used + 3),
                _ => ("\n", 0),
            };
            write!(out, "{separator}{} {name}", self.text.paint(&cells))?;
            used = start + columns;
        }
        writeln!(out)
    }
}
