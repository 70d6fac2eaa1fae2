//! What standard output can show.

use std::io::{self, IsTerminal};

use pinlane_report::DoctorStyle;
use pinlane_report::timeline::Text;
use terminal_size::{Width, terminal_size_of};

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
            let variable = |name: &str| {
                let mut all = variables.iter();
                all.find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(colours_are_wanted(variable), wanted, "{variables:?}");
        }
    }
}
