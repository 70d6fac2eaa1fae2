//! Text in columns: its width, clipped, wrapped, padded and in tables. A leaf: every other module may use it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
