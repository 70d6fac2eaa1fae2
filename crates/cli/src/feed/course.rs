//! Epoch after epoch, until it is enough.

use std::time::Instant;

use pinlane::Device;
use pinlane::load::{Epoch, Loader, LoaderError, SkippedSample};
use pinlane_report::FeedKernel;

use super::bytes::SampleBytes;
use super::consumer::{Consumer, GLANCE};
use super::progress::Progress;
use crate::interrupt::Interrupt;
use crate::measure::Clock;

/// When it is enough: whichever comes first.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) epochs: Option<u64>,
    pub(super) time_ns: Option<u64>,
}

impl End {
    pub(super) fn epochs(epochs: u64) -> Self {
        Self {
            epochs: Some(epochs),
            time_ns: None,
        }
    }

    pub(super) fn time(time_ns: u64) -> Self {
        Self {
            epochs: None,
            time_ns: Some(time_ns),
        }
    }
}

/// Bad samples that are told one by one.
const TOLD_AT_MOST: usize = 3;

/// How it went.
pub(super) struct Went {
    /// It was not interrupted.
    pub(super) complete: bool,
    /// Epochs that were run to their end.
    pub(super) epochs: u64,
    /// By the clock.
    pub(super) elapsed_ns: u64,
    pub(super) first_batch_ns: Option<u64>,
    /// By the machine's own clock.
    pub(super) wall_ns: u64,
    pub(super) kernel: Option<FeedKernel>,
    /// The first samples that were left out.
    pub(super) first_skipped: Vec<SkippedSample>,
    /// Bytes of samples, and in how many batches these are.
    pub(super) sample_bytes: (u64, u64),
    /// An epoch took no time on the clock, so that it would never have ended.
    pub(super) timeless: bool,
}

/// A loader whose batches are taken, one after the other.
pub(super) struct Course<'a> {
    device: &'a Device,
    loader: &'a Loader,
    clock: &'a Clock<'a>,
    end: End,
    consumer: Option<Consumer>,
    sample_bytes: SampleBytes,
    interrupt: &'a Interrupt,
    progress: Progress,
    start_ns: u64,
    first_batch_ns: Option<u64>,
    first_skipped: Vec<SkippedSample>,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        device: &'a Device,
        loader: &'a Loader,
        clock: &'a Clock<'a>,
        end: End,
        consumer: Option<Consumer>,
        sample_bytes: SampleBytes,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            device,
            loader,
            clock,
            end,
            consumer,
            sample_bytes,
            interrupt,
            progress: Progress::new(end, loader.batches() as u64),
            start_ns: clock.now_ns(),
            first_batch_ns: None,
            first_skipped: Vec::new(),
        }
    }

    /// Run until it is enough, and wait until all is done.
    pub(super) fn run(&mut self) -> anyhow::Result<Went> {
        let began = Instant::now();
        self.start_ns = self.clock.now_ns();
        let ran = self.epochs();
        self.progress.end();
        let (epochs, timeless) = ran?;
        let kernel = match self.consumer.take() {
            Some(consumer) => Some(consumer.finish()?),
            None => None,
        };
        self.device.synchronize()?;
        Ok(Went {
            complete: !self.interrupt.is_raised(),
            epochs,
            elapsed_ns: self.elapsed_ns(),
            first_batch_ns: self.first_batch_ns,
            wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            kernel,
            first_skipped: std::mem::take(&mut self.first_skipped),
            sample_bytes: self.sample_bytes.of(&self.loader.stats()),
            timeless,
        })
    }

    /// How many were run to their end, and whether they took no time.
    fn epochs(&mut self) -> anyhow::Result<(u64, bool)> {
        let mut epochs = 0;
        while self.end.epochs.is_none_or(|end| epochs < end) && !self.is_enough() {
            let before_ns = self.clock.now_ns();
            let epoch = self.loader.epoch(epochs)?;
            if !self.epoch(epoch)? {
                break;
            }
            epochs += 1;
            // Another epoch has the same samples, all of them bad.
            if self.loader.stats().samples == 0 {
                break;
            }
            if self.end.epochs.is_none() && self.clock.now_ns() == before_ns {
                return Ok((epochs, true));
            }
        }
        Ok((epochs, false))
    }

    /// Whether it came to its end.
    fn epoch(&mut self, mut epoch: Epoch) -> anyhow::Result<bool> {
        let number = epoch.number();
        loop {
            while !epoch.wait_timeout(GLANCE) {
                if self.is_enough() {
                    return Ok(false);
                }
            }
            let Some(batch) = epoch.next() else {
                return Ok(true);
            };
            let batch = match batch {
                // See `Watched`.
                Err(LoaderError::DatasetPanicked { .. }) if self.interrupt.is_raised() => {
                    return Ok(false);
                }
                batch => batch?,
            };
            self.sample_bytes.take(&batch);
            let untold = TOLD_AT_MOST - self.first_skipped.len();
            let skipped = batch.skipped().iter().take(untold);
            self.first_skipped.extend(skipped.cloned());
            if self.first_batch_ns.is_none() {
                self.first_batch_ns = Some(self.elapsed_ns());
            }
            let interrupt = self.interrupt;
            if let Some(consumer) = &mut self.consumer {
                consumer.take(&batch, || interrupt.is_raised())?;
            }
            drop(batch);
            self.progress
                .batch(number, self.elapsed_ns(), || self.loader.stats().bytes);
            if self.is_enough() {
                return Ok(false);
            }
        }
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.start_ns)
    }

    fn is_enough(&self) -> bool {
        let over = |time_ns| self.elapsed_ns() >= time_ns;
        self.interrupt.is_raised() || self.end.time_ns.is_some_and(over)
    }
}
