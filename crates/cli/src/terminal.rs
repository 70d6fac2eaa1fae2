//! What standard output can show.

use std::io::{self, IsTerminal};

use pinlane_report::DoctorStyle;
use pinlane_report::timeline::Text;
use terminal_size::{Width, terminal_size_of};

/// Charts as wide as the terminal, with colours where it has them; plain and 80 columns wide where
/// the output goes elsewhere.
pub(crate) fn chart_look() -> Text {
    let mut look = Text::default();
    (look.width, look.colour) = width_and_colour(look.width);
    look
}

/// Findings in the same way.
pub(crate) fn doctor_look() -> DoctorStyle {
    let (width, colour) = width_and_colour(DoctorStyle::default().width);
    DoctorStyle { width, colour }
}

fn width_and_colour(usual_width: usize) -> (usize, bool) {
    if !io::stdout().is_terminal() {
        return (usual_width, false);
    }
    let width = match terminal_size_of(io::stdout()) {
        Some((Width(columns), _)) => columns.into(),
        None => usual_width,
    };
    (width, colours_are_welcome(|name| std::env::var(name).ok()))
}

/// Not where `NO_COLOR` says something, nor on a terminal that calls itself dumb.
fn colours_are_welcome(variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = variable("TERM").is_some_and(|name| name == "dumb");
    !refused && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_dumb_terminals_are_heeded() {
        for (variables, welcome) in [
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
            assert_eq!(colours_are_welcome(variable), welcome, "{variables:?}");
        }
    }
}
