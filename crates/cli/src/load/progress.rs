//! How far it is, on standard error, where somebody looks at it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with the rate and the time that is left.
#[derive(Clone)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// For so many bytes.
    pub(super) fn new(what: String, bytes: u64) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = style("{msg}  {bar:32} {percent:>3}%");
        let bar = ProgressBar::with_draw_target(Some(bytes), target)
            .with_style(style)
            .with_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Whether nobody looks.
    pub(super) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// So many bytes are done.
    pub(super) fn reached(&self, bytes: u64) {
        if self.0.position() == 0 {
            // Before that nobody knows how fast it is.
            self.0.set_style(style(
                "{msg}  {bar:32} {percent:>3}%  {decimal_bytes_per_sec}  {eta} left",
            ));
        }
        self.0.set_position(bytes);
    }

    /// Nothing is left of it on the screen.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of our own")
}
