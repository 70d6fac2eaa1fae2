//! The width and the colours of the terminal, for text on standard output.

use std::io::{self, IsTerminal};

use pinlane_report::timeline::Text;
use pinlane_report::{DoctorStyle, wrap_long_lines};
use terminal_size::{Width, terminal_size_of};

const COLUMNS_MIN: usize = 80;

/// As wide as the terminal, with colours if it supports them. Elsewhere plain and 80 columns wide.
pub(crate) fn chart_look() -> Text {
    let mut look = Text::default();
    (look.width, look.colour) = width_and_colour(look.width);
    look
}

/// The same for the findings of `doctor`.
pub(crate) fn doctor_look() -> DoctorStyle {
    let (width, colour) = width_and_colour(DoctorStyle::default().width);
    DoctorStyle { width, colour }
}

/// Without lines that are wider than the terminal, or than 80 columns elsewhere. Tables need 80 columns.
pub(crate) fn wrapped(text: &str) -> String {
    let (width, _) = width_and_colour(COLUMNS_MIN);
    let line = |line: &str| match line.contains('\u{1b}') {
        // Coloured lines fit already, and their width is not that of their characters.
        true => line.to_owned(),
        false => wrap_long_lines(line, width.max(COLUMNS_MIN)),
    };
    text.split_inclusive('\n').map(line).collect()
}

fn width_and_colour(default_width: usize) -> (usize, bool) {
    if !io::stdout().is_terminal() {
        return (default_width, false);
    }
    let width = match terminal_size_of(io::stdout()) {
        Some((Width(columns), _)) => columns.into(),
        None => default_width,
    };
    (width, colours_are_wanted(|name| std::env::var(name).ok()))
}

/// False if `NO_COLOR` is set, and on dumb terminals.
fn colours_are_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = variable("TERM").is_some_and(|name| name == "dumb");
    !refused && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_dumb_terminals_are_respected() {
        for (variables, wanted) in [
            (&[][..], true),
            (&[("TERM", "xterm-256color")], true),
            (&[("NO_COLOR", "")], true),
            (&[("NO_COLOR", "1")], false),
            (&[("TERM", "dumb")], false),
        ] {
            let found = colours_are_wanted(crate::test_variables(variables));
            assert_eq!(found, wanted, "{variables:?}");
        }
    }
}
