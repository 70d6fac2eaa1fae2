//! What terminals show: charts and colours on standard output, progress bars on standard error.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
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

/// The length of a bar that shows a share of the work.
const WHOLE: u64 = 1000;

/// A progress bar. It disappears from the screen when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The template once something is done: before that, rate and remaining time are unknown.
    running: &'static str,
}

impl Progress {
    /// For steps of about the same length.
    pub(crate) fn steps(steps: usize) -> Self {
        Self::new(
            steps as u64,
            "{bar:32} {percent:>3}%  {msg}",
            "{bar:32} {percent:>3}%  {eta} left  {msg}",
        )
    }

    pub(crate) fn bytes(label: String, bytes: u64) -> Self {
        let progress = Self::new(
            bytes,
            "{msg}  {bar:32} {percent:>3}%",
            "{msg}  {bar:32} {percent:>3}%  {decimal_bytes_per_sec}  {eta} left",
        );
        progress.bar.set_message(label);
        progress
    }

    /// For work of which only the share done is known.
    pub(crate) fn share() -> Self {
        let template = "{bar:32} {percent:>3}%  {msg}";
        Self::new(WHOLE, template, template)
    }

    fn new(length: u64, starting: &'static str, running: &'static str) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(length), target)
            .with_style(style(starting))
            .with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, running }
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    pub(crate) fn message(&self, message: impl FnOnce() -> String) {
        if !self.is_hidden() {
            self.bar.set_message(message());
        }
    }

    pub(crate) fn set(&self, position: u64) {
        if self.bar.position() == 0 {
            self.bar.set_style(style(self.running));
        }
        self.bar.set_position(position);
    }

    pub(crate) fn set_share(&self, share: f64) {
        self.set((share * WHOLE as f64) as u64);
    }

    /// Removes the bar from the screen now, even if other clones of it exist.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn advance(&self) {
        self.set(self.bar.position() + 1);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
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
