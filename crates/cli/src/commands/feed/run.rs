//! Runs epochs until it is time to stop.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pinlane::load::{Batch, Epoch, Loader, LoaderError, SkippedSample};
use pinlane::{Builtin, Device, DeviceBuf, Event, Stream};
use pinlane_report::{FeedInterval, FeedKernel, FeedTarget};

use super::interval_log::IntervalLog;
use super::report::SampleBytes;
use crate::clock::{HostClock, duration_ns};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Bad samples that are reported one by one.
const SKIPPED_MAX: usize = 3;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How often to check for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Kernels in flight: enough that the GPU never waits for the host, few enough that Ctrl-C does not wait long
/// for the GPU.
const IN_FLIGHT_MAX: usize = 2;

/// Bytes of a batch that are read.
const READ_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct FeedOutcome {
    pub(super) complete: bool,
    pub(super) epochs: u64,
    /// On the host's clock, which may be simulated.
    pub(super) elapsed_ns: u64,
    pub(super) first_batch_ns: Option<u64>,
    /// On the host's clock, after the first batch.
    pub(super) intervals: Vec<FeedInterval>,
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
    pub(super) end: FeedTarget,
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
            batches: 0,
            intervals: IntervalLog::new(),
            progress: Progress::share(),
            shown: Instant::now(),
            outcome: FeedOutcome::default(),
        };
        self.run_epochs(&mut state)?;
        drop(state.progress);
        let kernel = self.consumer.take().map(Consumer::finish).transpose()?;
        self.device.synchronize()?;
        Ok(FeedOutcome {
            complete: !self.interrupt.is_raised(),
            elapsed_ns: self.clock.now_ns().saturating_sub(state.start_ns),
            wall_ns: duration_ns(state.start.elapsed()),
            intervals: state.intervals.finish(),
            kernel,
            sample_bytes: self.sample_bytes.total(&self.loader.stats()),
            ..state.outcome
        })
    }

    fn run_epochs(&mut self, state: &mut RunState) -> anyhow::Result<()> {
        loop {
            let number = state.outcome.epochs;
            if self.end.epochs.is_some_and(|end| number >= end) || self.should_stop(state) {
                return Ok(());
            }
            let start_ns = self.clock.now_ns();
            if !self.run_epoch(self.loader.epoch(number)?, state)? {
                return Ok(());
            }
            state.outcome.epochs += 1;
            // All samples are bad, and would be again.
            if self.loader.stats().samples == 0 {
                return Ok(());
            }
            if self.end.epochs.is_none() && self.clock.now_ns() == start_ns {
                state.outcome.timeless = true;
                return Ok(());
            }
        }
    }

    fn run_epoch(&mut self, mut epoch: Epoch, state: &mut RunState) -> anyhow::Result<bool> {
        let number = epoch.number();
        loop {
            let asked_ns = self.elapsed_ns(state);
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
            let elapsed_ns = self.elapsed_ns(state);
            let wait_ns = elapsed_ns.saturating_sub(asked_ns);
            let samples = batch.len() as u64;
            state.intervals.add(elapsed_ns, wait_ns, samples);
            let outcome = &mut state.outcome;
            let room = SKIPPED_MAX - outcome.first_skipped.len();
            let skipped = batch.skipped().iter().take(room);
            outcome.first_skipped.extend(skipped.cloned());
            outcome.first_batch_ns.get_or_insert(elapsed_ns);
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
        let message = || format!("epoch {epoch}, {rate:.1} GB/s");
        state.progress.message(message);
    }

    fn elapsed_ns(&self, state: &RunState) -> u64 {
        self.clock.now_ns().saturating_sub(state.start_ns)
    }

    fn should_stop(&self, state: &RunState) -> bool {
        let is_over = |time_ns| self.elapsed_ns(state) >= time_ns;
        self.interrupt.is_raised() || self.end.time_ns.is_some_and(is_over)
    }
}

struct RunState {
    start: Instant,
    start_ns: u64,
    batches: u64,
    intervals: IntervalLog,
    progress: Progress,
    shown: Instant,
    /// So far.
    outcome: FeedOutcome,
}

/// Runs a kernel for each batch on its own stream, in place of a training step, and times it.
pub(super) struct Consumer {
    kernels: Builtin,
    stream: Stream,
    kernel_ns: u64,
    scratch: DeviceBuf<u8>,
    first_start: Event,
    /// Events before and after each kernel.
    in_flight: VecDeque<(Event, Event)>,
    spare: Vec<(Event, Event)>,
    done: FeedKernel,
}

impl Consumer {
    pub(super) fn new(device: &Device, kernel_ns: u64) -> anyhow::Result<Self> {
        let (count, busy_ns, span_ns) = (0, 0, 0);
        let done = FeedKernel {
            count,
            busy_ns,
            span_ns,
        };
        let mut spare = Vec::new();
        for _ in 0..=IN_FLIGHT_MAX {
            spare.push((device.event_with_timing()?, device.event_with_timing()?));
        }
        Ok(Self {
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            kernel_ns,
            scratch: device.alloc(READ_BYTES)?,
            first_start: device.event_with_timing()?,
            in_flight: VecDeque::new(),
            spare,
            done,
        })
    }

    /// Submits a kernel for this batch. Waits while too many are in flight, unless `stop` returns true.
    pub(super) fn consume(&mut self, batch: &Batch, stop: impl Fn() -> bool) -> anyhow::Result<()> {
        // Reading the batch before and after the kernel makes the stream wait for the batch outside of the
        // kernel's time, and keeps the batch in use until the kernel is done.
        self.read(batch)?;
        let (start, end) = self.spare.pop().expect("one more than may be in flight");
        if self.done.count == 0 && self.in_flight.is_empty() {
            self.stream.record(&self.first_start)?;
        }
        self.stream.record(&start)?;
        self.kernels.spin(&self.stream, self.kernel_ns)?;
        self.stream.record(&end)?;
        self.read(batch)?;
        self.in_flight.push_back((start, end));
        while self.in_flight.len() > IN_FLIGHT_MAX {
            let (_, end) = self.in_flight.front().expect("not empty");
            if end.wait_timeout(POLL_INTERVAL)? {
                self.count_first()?;
            } else if stop() {
                // Nothing is submitted after this.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for the last kernels. Returns the times of all.
    pub(super) fn finish(mut self) -> anyhow::Result<FeedKernel> {
        while let Some((_, end)) = self.in_flight.front() {
            end.synchronize()?;
            self.count_first()?;
        }
        self.stream.synchronize()?;
        Ok(self.done)
    }

    fn count_first(&mut self) -> pinlane::Result<()> {
        let Some((start, end)) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let ns = |from: &Event, to: &Event| -> pinlane::Result<u64> {
            Ok(u64::try_from(from.elapsed_ns(to)?).unwrap_or(0))
        };
        self.done.count += 1;
        self.done.busy_ns += ns(&start, &end)?;
        self.done.span_ns = ns(&self.first_start, &end)?;
        self.spare.push((start, end));
        Ok(())
    }

    fn read(&mut self, batch: &Batch) -> pinlane::Result<()> {
        let mut fields = batch.fields().map(|field| field.bytes());
        let Some(bytes) = fields.find(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        let len = bytes.len().min(READ_BYTES);
        self.stream
            .copy_on_device(bytes.range(..len), self.scratch.range_mut(..len))
    }
}
