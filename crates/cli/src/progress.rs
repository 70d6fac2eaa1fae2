//! How far it is, on standard error, where somebody looks at it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with the time that is left.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For so many steps of about the same length.
    pub(crate) fn new(steps: usize) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = style("{bar:32} {percent:>3}%  {msg}");
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// A step begins.
    pub(crate) fn begin(&self, what: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            self.0.set_message(what());
        }
    }

    /// A step is done.
    pub(crate) fn step(&self) {
        if self.0.position() == 0 {
            // Before that nobody knows what is left.
            self.0
                .set_style(style("{bar:32} {percent:>3}%  {eta} left  {msg}"));
        }
        self.0.inc(1);
    }
}

impl Drop for Progress {
    /// Nothing is left of it on the screen.
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of our own")
}
