//! How far it is, on standard error, where somebody looks at it.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::course::End;

/// A bar with the rate so far.
pub(super) struct Progress {
    bar: ProgressBar,
    end: End,
    batches_an_epoch: u64,
    batches: u64,
    began: Instant,
    shown: Instant,
}

/// The bar's length, which stands for all of it.
const WHOLE: u64 = 1000;

/// More often than this nobody can read it.
const PAUSE: Duration = Duration::from_millis(100);

impl Progress {
    pub(super) fn new(end: End, batches_an_epoch: u64) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:32} {percent:>3}%  {msg}");
        let style = style.expect("a template of our own");
        let bar = ProgressBar::with_draw_target(Some(WHOLE), target).with_style(style);
        let now = Instant::now();
        Self {
            bar,
            end,
            batches_an_epoch,
            batches: 0,
            began: now,
            shown: now,
        }
    }

    /// A batch was taken, so long after the start; `bytes` says how many there were so far.
    pub(super) fn batch(&mut self, epoch: u64, elapsed_ns: u64, bytes: impl FnOnce() -> u64) {
        self.batches += 1;
        if self.bar.is_hidden() || self.shown.elapsed() < PAUSE {
            return;
        }
        self.shown = Instant::now();
        let by_time = self.end.time_ns.map(|ns| share(elapsed_ns, ns));
        let by_epochs = self.end.epochs.map(|epochs| {
            let all = epochs.saturating_mul(self.batches_an_epoch);
            share(self.batches, all)
        });
        let share = by_time.into_iter().chain(by_epochs).fold(0.0, f64::max);
        self.bar.set_position((share * WHOLE as f64) as u64);
        let rate = bytes() as f64 / self.began.elapsed().as_nanos().max(1) as f64;
        self.bar
            .set_message(format!("epoch {epoch}, {rate:.1} GB/s"));
    }

    /// Nothing is left of it on the screen.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}
