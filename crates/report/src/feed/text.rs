//! A feed as text.

use std::fmt::Write;

use super::job::counted;
use super::{Feed, FeedSkipped, FeedStage};
use crate::Origin;
use crate::format::{amount, byte_rate};
use crate::timeline::layout::words::{clean, duration, percent};

/// What it is.
pub(super) const TITLE: &str = "Dataset to the GPU";

/// Columns of a bar that is all of it.
const BAR_COLUMNS: f64 = 32.0;

impl Feed {
    /// What was fed, how fast, where the time went, what limits, and what would help.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{TITLE}\n{}\n{}\n",
            clean(&self.origin.line()),
            self.job.lines().join("\n")
        );
        text.push('\n');
        if !self.complete {
            let _ = writeln!(text, "INTERRUPTED: {}", self.job.asked.interrupted());
        }
        let _ = writeln!(text, "{}", self.rates());
        text.push_str(&self.counts());
        text.push_str(&self.time());
        let _ = writeln!(text, "Pinned memory: {}", amount(self.pinned_bytes));
        let advice = self.advice();
        if !advice.is_empty() {
            text.push('\n');
        }
        for line in advice {
            let _ = writeln!(text, "{line}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", clean(note));
        }
        text
    }

    /// The clock that rates are by, where it is not the machine's.
    fn clock_words(&self) -> &'static str {
        match self.origin {
            Origin::Measured { .. } => "",
            _ => ", by the simulated clock, on which reading samples takes no time",
        }
    }

    /// Rates, in one line without its end, or why there are none.
    pub(super) fn rates(&self) -> String {
        let Some(samples) = self.samples_per_s else {
            return match (self.done.samples, self.done.elapsed_ns) {
                (0, _) => "Nothing was fed",
                (_, None) => "No rate: no clock saw how long it took",
                (_, Some(_)) => "No rate: nothing takes time on this device",
            }
            .to_owned();
        };
        let bytes = self.done.rates(self.sample_gb_per_s, self.moved_gb_per_s);
        format!("{} samples/s{bytes}{}", whole(samples), self.clock_words())
    }

    pub(super) fn counts(&self) -> String {
        let done = &self.done;
        let mut text = format!(
            "{} in {}, {}",
            counted(done.samples, "sample"),
            counted(done.batches, "batch"),
            done.amounts()
        );
        if let Some(ns) = done.elapsed_ns {
            let _ = write!(text, ", in {}", duration(ns));
        }
        let _ = write!(text, "; {}", counted(done.epochs, "whole epoch"));
        if self.job.skip_bad || done.skipped > 0 {
            let _ = write!(text, "; {} skipped", counted(done.skipped, "sample"));
        }
        text.push('\n');
        for FeedSkipped { index, why } in &self.first_skipped {
            let _ = writeln!(text, "Skipped: sample {index}: {}", clean(why));
        }
        let untold = done.skipped.saturating_sub(self.first_skipped.len() as u64);
        if untold > 0 && !self.first_skipped.is_empty() {
            let _ = writeln!(text, "Skipped: {untold} more");
        }
        if let Some(ns) = done.first_batch_ns {
            let _ = writeln!(text, "First batch after {}", duration(ns));
        }
        text
    }

    fn time(&self) -> String {
        let mut text = String::new();
        if !self.stages.is_empty() {
            text.push_str("\nWhat the reading threads did:\n");
            self.stages
                .iter()
                .for_each(|stage| text.push_str(&stage.line()));
            text.push('\n');
        }
        if let Some(line) = self.link_line() {
            let _ = writeln!(text, "{line}");
        }
        if let Some(line) = self.gpu_line() {
            let _ = writeln!(text, "{line}");
        }
        if let Some(line) = self.host_line() {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Of copies that took time.
    fn link_line(&self) -> Option<String> {
        let rate = byte_rate(self.link_gb_per_s?);
        Some(match self.link_busy_share {
            Some(busy) => format!(
                "Link: busy {} of the time, {rate} while it was",
                percent(busy)
            ),
            None => format!("Link: {rate} while it was busy"),
        })
    }

    pub(super) fn gpu_line(&self) -> Option<String> {
        let (kernel, idle) = (self.kernel?, self.gpu_idle_share?);
        let each_ns = kernel.busy_ns / kernel.count.max(1);
        Some(format!(
            "GPU: idle {:.1}% of the time from the first to the last of {} of {}",
            idle * 100.0,
            counted(kernel.count, "kernel"),
            duration(each_ns)
        ))
    }

    /// On a simulated device: what is real of it.
    pub(super) fn host_line(&self) -> Option<String> {
        let simulated = !matches!(self.origin, Origin::Measured { .. });
        if !simulated || self.host.read_ns == 0 || self.done.samples == 0 {
            return None;
        }
        let a_second = self.done.samples as f64 * 1e9 / self.host.read_ns as f64;
        Some(format!(
            "Host: reading took {} of this machine's real time, {} samples/s a thread",
            duration(self.host.read_ns),
            whole(a_second)
        ))
    }
}

impl FeedStage {
    fn line(&self) -> String {
        let bar = "█".repeat((self.share * BAR_COLUMNS).round() as usize);
        let line = format!("  {:<30} {:>4}  {bar}", self.name, percent(self.share));
        format!("{}\n", line.trim_end())
    }
}

/// Digits that count.
fn whole(number: f64) -> String {
    match number {
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}
