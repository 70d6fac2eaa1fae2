//! Numbers and text as reports show them. A leaf: every other module may use it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One decimal, with a trailing `.0` dropped: `6`, `55.4`.
pub(crate) fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A size in the largest unit that divides it: `256 MiB`, `1000 B`.
pub(crate) fn exact_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |(unit, _): &(u64, &str)| bytes >= *unit && bytes.is_multiple_of(*unit);
    match UNITS.into_iter().find(fits) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A size with three significant digits: `512 B`, `1.50 MiB`.
pub(crate) fn rounded_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A size in at most three digits: exact where that fits, otherwise rounded.
#[must_use]
pub fn short_size(bytes: u64) -> String {
    let exact = exact_size(bytes);
    match exact.split_once(' ') {
        Some((number, unit)) if number.len() <= 3 && unit != "B" => exact,
        _ => rounded_size(bytes),
    }
}

/// A number with the digits that matter: `0.43`, `7.21`, `55.4`.
pub(crate) fn rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() >= 1e6 => format!("{value:.1e}"),
        value if value.abs() < 9.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

/// A rate in a column of GB/s: one decimal, or more digits where that would leave none.
pub(crate) fn column_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if value < 0.000_95 => format!("{value:.1e}"),
        value if value < 0.095 => format!("{value:.3}"),
        value => format!("{value:.1}"),
    }
}

/// A rate with a fitting unit: `55.4 GB/s`, `7.21 MB/s`.
pub(crate) fn byte_rate(gb_per_s: f64) -> String {
    match gb_per_s {
        value if value == 0.0 || value >= 0.0995 || !value.is_finite() => {
            format!("{} GB/s", rate(value))
        }
        value if value >= 0.0000995 => format!("{} MB/s", rate(value * 1e3)),
        value => format!("{} KB/s", rate(value * 1e6)),
    }
}

/// A time with three significant digits: `850 ns`, `12.3 µs`, `1.00 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    // A value that would round to 1000 takes the next unit.
    let (unit_ns, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..999_500 => (1e3, "µs"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(ns as f64 / unit_ns))
}

/// `1.25x`; empty without a speed-up.
pub(crate) fn speedup_label(speedup: Option<f64>) -> String {
    speedup.map_or_else(String::new, |speedup| match speedup < 1e6 {
        true => format!("{speedup:.2}x"),
        false => format!("{speedup:.1e}x"),
    })
}

/// `1.29×`, with fewer digits for large factors; empty if it is not finite.
pub(crate) fn factor_label(factor: f64) -> String {
    match factor.is_finite() {
        true => format!("{}×", rate(factor)),
        false => String::new(),
    }
}

/// A share of 1 as a percentage: `87%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A count with its noun: `1 batch`, `2 samples`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match (count, noun) {
        (1, _) => "",
        (_, "batch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{plural}")
}

pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Replaces characters that move the cursor, change the text direction or are invisible.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars()
        .map(|c| if is_visible(c) { c } else { ' ' })
        .collect()
}

fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Terminal columns of a text.
pub(crate) fn display_width(text: &str) -> usize {
    text.width()
}

/// The text in at most `columns`; `ellipsis` replaces what does not fit.
pub(crate) fn clip(text: &str, columns: usize, ellipsis: char) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let width = |c: char| c.width().unwrap_or(0);
    let Some(room) = columns.checked_sub(width(ellipsis)) else {
        return String::new();
    };
    let mut used = 0;
    let fits = |c: &char| {
        used += width(*c);
        used <= room
    };
    let clipped: String = text.chars().take_while(fits).collect();
    format!("{}{ellipsis}", clipped.trim_end_matches(' '))
}

/// Lines of at most `columns`, at least one. A longer word gets a line of its own, uncut, so that
/// commands can still be copied.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_where(text, |line| display_width(line) <= columns)
}

/// Like [`wrap`], into lines for which `fits` holds.
pub(crate) fn wrap_where(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one");
        match line.as_str() {
            "" => line.push_str(word),
            start if fits(&format!("{start} {word}")) => *line = format!("{start} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks lines of more than `columns` at spaces; the rest goes on below, with the same indent. Other lines
/// stay as they are, and so do words that are longer, so that commands and paths can still be copied.
#[must_use]
pub fn wrap_long_lines(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (indent, mut rest) = line.split_at(indent);
        let room = columns.saturating_sub(indent.len());
        while let Some(end) = break_at(rest, room) {
            wrapped.push_str(indent);
            wrapped.push_str(rest[..end].trim_end_matches(' '));
            wrapped.push('\n');
            rest = rest[end..].trim_start_matches(' ');
        }
        wrapped.push_str(indent);
        wrapped.push_str(rest);
    }
    wrapped
}

/// Where to break a line that is too long: the last space that leaves at most `room` columns, or else the
/// first one.
fn break_at(line: &str, room: usize) -> Option<usize> {
    let line = line.trim_end();
    if display_width(line) <= room {
        return None;
    }
    let spaces = || line.match_indices(' ').map(|(at, _)| at);
    let fitting = spaces().take_while(|at| display_width(&line[..*at]) <= room);
    fitting.last().or_else(|| spaces().next())
}

/// The label, then the text wrapped beside it.
pub(crate) fn labelled(label: &str, text: &str, width: usize) -> String {
    let indent = display_width(label);
    let lines = wrap(text, width.saturating_sub(indent).max(1));
    let separator = format!("\n{}", " ".repeat(indent));
    format!("{label}{}\n", lines.join(&separator))
}

pub(crate) fn padded_left(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(display_width(text));
    format!("{text}{}", " ".repeat(padding))
}

/// One line of a table: the first cell left-aligned, the others right-aligned with at least one space
/// before them.
pub(crate) fn table_row<C: AsRef<str>>(widths: &[usize], cells: &[C]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().map(AsRef::as_ref).zip(widths) {
        if line.is_empty() {
            line = padded_left(cell, *width);
        } else {
            let padding = width.saturating_sub(display_width(cell)).max(1);
            line = format!("{line}{}{cell}", " ".repeat(padding));
        }
    }
    format!("{}\n", line.trim_end())
}

/// Notes for the reader, a line each.
pub(crate) fn notes_as_text(notes: &[String]) -> String {
    let line = |note: &String| format!("{}.\n", sanitize(note));
    notes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!(
            [6.0, 5.96, 55.44, 10.0, 0.04, 0.05, 100.26].map(one_decimal),
            ["6", "6", "55.4", "10", "0", "0.1", "100.3"]
        );
        assert_eq!(
            [55.44, 0.38, 0.0994, 0.000_764, 0.000_000_5, 0.0].map(byte_rate),
            [
                "55.4 GB/s",
                "0.38 GB/s",
                "99.4 MB/s",
                "0.76 MB/s",
                "0.50 KB/s",
                "0.00 GB/s"
            ]
        );
        assert_eq!(
            [0, 999, 1_000, 9_996, 24_512_345, 999_600, 61_000_000_000].map(duration),
            [
                "0 ns", "999 ns", "1.00 µs", "10.0 µs", "24.5 ms", "1.00 ms", "61.0 s"
            ]
        );
    }

    #[test]
    fn sizes_are_exact_short_or_rounded() {
        assert_eq!(
            [256 << 20, 1 << 30, 3 << 19, 1000, 1].map(exact_size),
            ["256 MiB", "1 GiB", "1536 KiB", "1000 B", "1 B"]
        );
        assert_eq!(
            [96 << 20, 1 << 40, (1 << 30) + 1024, 26_188_850, 1000].map(short_size),
            ["96 MiB", "1.00 TiB", "1.00 GiB", "25.0 MiB", "1000 B"]
        );
        assert_eq!(
            [1023, 1 << 20, (1 << 20) - 1, 16 << 20, u64::MAX].map(rounded_size),
            ["1023 B", "1.00 MiB", "1.00 MiB", "16.0 MiB", "16.0 EiB"]
        );
    }

    #[test]
    fn clipped_text_fits_and_shows_the_cut() {
        assert_eq!(clip("planned", 7, '…'), "planned");
        assert_eq!(clip("planned pipeline", 9, '…'), "planned…");
        assert_eq!(clip("漢字漢字", 5, '…'), "漢字…");
        assert_eq!(clip("abc", 0, '…'), "");
        assert_eq!(sanitize("a\u{1b}[2J\u{202e}b\n"), "a [2J b ");
    }

    #[test]
    fn long_lines_continue_below() {
        assert_eq!(
            labelled("Advice      ", "one two three four", 24),
            "Advice      one two\n            three four\n"
        );
        let word = labelled("            ", "a-word-without-any-end", 20);
        assert_eq!(word.lines().count(), 1);
    }

    #[test]
    fn only_long_lines_are_broken() {
        assert_eq!(
            wrap_long_lines("  a  b   c\n  one two three\na-long-word x\n\nend", 10),
            "  a  b   c\n  one two\n  three\na-long-word\nx\n\nend"
        );
        assert_eq!(wrap_long_lines("", 10), "");
        assert_eq!(wrap_long_lines("漢字 漢字\n", 8), "漢字\n漢字\n");
    }

    #[test]
    fn table_cells_stay_apart() {
        assert_eq!(table_row(&[4, 6], &["a", "1.5"]), "a      1.5\n");
        assert_eq!(table_row(&[4, 3], &["a", "too wide"]), "a    too wide\n");
        assert_eq!(table_row(&[4, 3], &["a", ""]), "a\n");
    }
}
