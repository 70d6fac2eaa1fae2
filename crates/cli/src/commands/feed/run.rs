//! Runs epochs until it is time to stop.

use std::time::{Duration, Instant};

use pinlane::Device;
use pinlane::load::{Epoch, Loader, LoaderError, SkippedSample};
use pinlane_report::FeedKernel;

use super::consumer::{Consumer, POLL_INTERVAL};
use super::sample_bytes::SampleBytes;
use crate::clock::{HostClock, duration_ns};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Bad samples that are reported one by one.
const SKIPPED_MAX: usize = 3;

/// How often to update the progress bar.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// When to stop: whichever comes first.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) epochs: Option<u64>,
    pub(super) time_ns: Option<u64>,
}

/// The result of a run.
pub(super) struct FeedOutcome {
    /// Not interrupted.
    pub(super) complete: bool,
    /// Complete epochs.
    pub(super) epochs: u64,
    /// On the host's clock, which may be simulated.
    pub(super) elapsed_ns: u64,
    pub(super) first_batch_ns: Option<u64>,
    /// On this machine's clock.
    pub(super) wall_ns: u64,
    pub(super) kernel: Option<FeedKernel>,
    pub(super) first_skipped: Vec<SkippedSample>,
    /// Bytes of samples, and the batches that they are in.
    pub(super) sample_bytes: (u64, u64),
    /// An epoch took no time, so --time would never have ended the run.
    pub(super) timeless: bool,
}

/// Takes the batches of a loader one after the other.
pub(super) struct FeedRun<'a> {
    pub(super) device: &'a Device,
    pub(super) loader: &'a Loader,
    pub(super) clock: &'a HostClock<'a>,
    pub(super) end: End,
    pub(super) consumer: Option<Consumer>,
    pub(super) sample_bytes: SampleBytes,
    pub(super) interrupt: &'a Interrupt,
}

impl FeedRun<'_> {
    /// Runs until it is time to stop, and waits for the device.
    pub(super) fn run(mut self) -> anyhow::Result<FeedOutcome> {
        let mut state = RunState {
            start: Instant::now(),
            start_ns: self.clock.now_ns(),
            first_batch_ns: None,
            first_skipped: Vec::new(),
            batches: 0,
            progress: Progress::share(),
            shown: Instant::now(),
        };
        let (epochs, timeless) = self.run_epochs(&mut state)?;
        drop(state.progress);
        let kernel = self.consumer.take().map(Consumer::finish).transpose()?;
        self.device.synchronize()?;
        Ok(FeedOutcome {
            complete: !self.interrupt.is_raised(),
            epochs,
            elapsed_ns: self.clock.now_ns().saturating_sub(state.start_ns),
            first_batch_ns: state.first_batch_ns,
            wall_ns: duration_ns(state.start.elapsed()),
            kernel,
            first_skipped: state.first_skipped,
            sample_bytes: self.sample_bytes.total(&self.loader.stats()),
            timeless,
        })
    }

    /// Returns the number of complete epochs, and whether they took no time.
    fn run_epochs(&mut self, state: &mut RunState) -> anyhow::Result<(u64, bool)> {
        let mut epochs = 0;
        while self.end.epochs.is_none_or(|end| epochs < end) && !self.should_stop(state) {
            let start_ns = self.clock.now_ns();
            let epoch = self.loader.epoch(epochs)?;
            if !self.run_epoch(epoch, state)? {
                break;
            }
            epochs += 1;
            // All samples are bad, and would be again.
            if self.loader.stats().samples == 0 {
                break;
            }
            if self.end.epochs.is_none() && self.clock.now_ns() == start_ns {
                return Ok((epochs, true));
            }
        }
        Ok((epochs, false))
    }

    /// Returns whether the epoch is complete.
    fn run_epoch(&mut self, mut epoch: Epoch, state: &mut RunState) -> anyhow::Result<bool> {
        let number = epoch.number();
        loop {
            while !epoch.wait_timeout(POLL_INTERVAL) {
                if self.should_stop(state) {
                    return Ok(false);
                }
            }
            let Some(batch) = epoch.next() else {
                return Ok(true);
            };
            let batch = match batch {
                // See `Interruptible`.
                Err(LoaderError::DatasetPanicked { .. }) if self.interrupt.is_raised() => {
                    return Ok(false);
                }
                batch => batch?,
            };
            self.sample_bytes.add(&batch);
            let room = SKIPPED_MAX - state.first_skipped.len();
            let skipped = batch.skipped().iter().take(room);
            state.first_skipped.extend(skipped.cloned());
            if state.first_batch_ns.is_none() {
                state.first_batch_ns = Some(self.elapsed_ns(state));
            }
            if let Some(consumer) = &mut self.consumer {
                consumer.consume(&batch, || self.interrupt.is_raised())?;
            }
            drop(batch);
            self.show_progress(number, state);
            if self.should_stop(state) {
                return Ok(false);
            }
        }
    }

    fn show_progress(&self, epoch: u64, state: &mut RunState) {
        state.batches += 1;
        if state.progress.is_hidden() || state.shown.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        state.shown = Instant::now();
        let ratio = |part: u64, whole: u64| (part as f64 / whole.max(1) as f64).min(1.0);
        let by_time = self.end.time_ns.map(|ns| ratio(self.elapsed_ns(state), ns));
        let by_epochs = self.end.epochs.map(|epochs| {
            let batches = epochs.saturating_mul(self.loader.batches() as u64);
            ratio(state.batches, batches)
        });
        let share = by_time.into_iter().chain(by_epochs).fold(0.0, f64::max);
        state.progress.set_share(share);
        let bytes = self.loader.stats().bytes;
        let rate = bytes as f64 / state.start.elapsed().as_nanos().max(1) as f64;
        state
            .progress
            .message(|| format!("epoch {epoch}, {rate:.1} GB/s"));
    }

    fn elapsed_ns(&self, state: &RunState) -> u64 {
        self.clock.now_ns().saturating_sub(state.start_ns)
    }

    fn should_stop(&self, state: &RunState) -> bool {
        let is_over = |time_ns| self.elapsed_ns(state) >= time_ns;
        self.interrupt.is_raised() || self.end.time_ns.is_some_and(is_over)
    }
}

/// What changes during a run.
struct RunState {
    start: Instant,
    start_ns: u64,
    first_batch_ns: Option<u64>,
    first_skipped: Vec<SkippedSample>,
    batches: u64,
    progress: Progress,
    shown: Instant,
}
