//! Text in columns: sanitized, clipped, wrapped and padded to a display width.

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
    fn table_cells_stay_apart() {
        assert_eq!(table_row(&[4, 6], &["a", "1.5"]), "a      1.5\n");
        assert_eq!(table_row(&[4, 3], &["a", "too wide"]), "a    too wide\n");
        assert_eq!(table_row(&[4, 3], &["a", ""]), "a\n");
    }
}
