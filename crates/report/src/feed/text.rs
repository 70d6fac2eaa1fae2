//! A feed as text.

use std::fmt::Write;

use super::{Feed, FeedSkipped, FeedStage};
use crate::format::{byte_rate, counted, duration, percent, short_size};
use crate::text_layout::sanitize;

pub(super) const TITLE: &str = "Dataset to the GPU";

/// Columns of a bar of 100%.
const BAR_COLUMNS: f64 = 32.0;

impl Feed {
    /// The job, rates, times, the limit, and advice.
    #[must_use]
    pub fn to_text(&self) -> String {
        let interrupted = match self.complete {
            true => String::new(),
            false => format!("INTERRUPTED: {}\n", self.job.target.interrupted()),
        };
        let mut text = format!(
            "{TITLE}\n{}\n{}\n\n{interrupted}{}\n{}{}Pinned memory: {}\n",
            sanitize(&self.origin.line()),
            self.job.lines().join("\n"),
            self.rates(),
            self.counts(),
            self.time(),
            short_size(self.pinned_bytes)
        );
        let advice = self.advice();
        if !advice.is_empty() {
            text.push('\n');
        }
        let notes = self.notes.iter().map(|note| sanitize(note));
        text.extend(advice.into_iter().chain(notes).map(|line| line + "\n"));
        text
    }

    /// Rates as a line without newline, or why there are none.
    pub(super) fn rates(&self) -> String {
        let Some(samples) = self.samples_per_s else {
            return match (self.done.samples, self.done.elapsed_ns) {
                (0, _) => "Nothing was fed",
                (_, None) => "No rate: the time was not measured",
                (_, Some(_)) => "No rate: nothing takes time on this device",
            }
            .to_owned();
        };
        let bytes = self.done.rates(self.sample_gb_per_s, self.moved_gb_per_s);
        let clock = match self.origin.is_measured() {
            true => "",
            false => ", by the simulated clock; reading samples takes no simulated time",
        };
        format!("{} samples/s{bytes}{clock}", whole(samples))
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
        let _ = write!(text, "; {}", counted(done.epochs, "complete epoch"));
        if self.job.skip_bad || done.skipped > 0 {
            let _ = write!(text, "; {} skipped", counted(done.skipped, "sample"));
        }
        text.push('\n');
        text.extend(self.first_skipped.iter().map(FeedSkipped::line));
        let unlisted = done.skipped.saturating_sub(self.first_skipped.len() as u64);
        if unlisted > 0 && !self.first_skipped.is_empty() {
            let _ = writeln!(text, "Skipped: {unlisted} more");
        }
        if let Some(ns) = done.first_batch_ns {
            let _ = writeln!(text, "First batch after {}", duration(ns));
        }
        text
    }

    fn time(&self) -> String {
        let mut text = String::new();
        if !self.stages.is_empty() {
            text.push_str("\nTime of the reading threads:\n");
            text.extend(self.stages.iter().map(FeedStage::line));
            text.push('\n');
        }
        let lines = [self.link_line(), self.gpu_line(), self.host_line()];
        text.extend(lines.into_iter().flatten().map(|line| line + "\n"));
        text
    }

    /// The link, if copies took time.
    fn link_line(&self) -> Option<String> {
        let rate = byte_rate(self.link_gb_per_s?);
        let busy = self.link_busy_share.map(percent);
        let busy = busy.map_or_else(String::new, |busy| format!("busy {busy} of the time, "));
        Some(format!("Link: {busy}{rate} while busy"))
    }

    pub(super) fn gpu_line(&self) -> Option<String> {
        let (kernel, idle) = (self.kernel?, self.gpu_idle_share?);
        let each_ns = kernel.busy_ns / kernel.count.max(1);
        Some(format!(
            "GPU: idle {:.1}% of the time between the first and the last of {} of {}",
            idle * 100.0,
            counted(kernel.count, "kernel"),
            duration(each_ns)
        ))
    }

    /// Real time of the host, on a simulated device.
    pub(super) fn host_line(&self) -> Option<String> {
        if self.origin.is_measured() || self.host.read_ns == 0 || self.done.samples == 0 {
            return None;
        }
        let samples_per_s = self.done.samples as f64 * 1e9 / self.host.read_ns as f64;
        Some(format!(
            "Host: reading took {} of real time, {} samples/s per thread",
            duration(self.host.read_ns),
            whole(samples_per_s)
        ))
    }
}

impl FeedSkipped {
    fn line(&self) -> String {
        format!("Skipped: sample {}: {}\n", self.index, sanitize(&self.why))
    }
}

impl FeedStage {
    fn line(&self) -> String {
        let bar = "█".repeat((self.share * BAR_COLUMNS).round() as usize);
        let line = format!("  {:<30} {:>4}  {bar}", self.name, percent(self.share));
        format!("{}\n", line.trim_end())
    }
}

/// One decimal below 100, none above.
fn whole(number: f64) -> String {
    let decimals = if number < 100.0 { 1 } else { 0 };
    format!("{number:.decimals$}")
}
