//! Progress bars on standard error.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

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
