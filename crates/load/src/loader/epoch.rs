//! One pass over the samples.

use std::fmt;
use std::future::Future;
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use pinlane_core::internal::lock;

use crate::{EpochState, SampleOrder, panic};

use super::epoch_scheduler::EpochScheduler;
use super::{Batch, LoaderCore, LoaderError, Result};

/// How long the end of an epoch waits for its last copies.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same after an error, to find out which batches reached the device.
const PATIENCE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The batches of one epoch, in order. Worker threads read ahead; dropping the epoch stops them.
///
/// Iterate over it, or await [`next_batch`](Self::next_batch). It ends after an error. Only the end waits for
/// the device: for the last copies, a few seconds at most, to report their errors.
///
/// Dropping it waits for its workers, which end after the sample that they are reading. If a worker drops it,
/// inside a read, the loader is free for the next epoch once the workers have ended.
pub struct Epoch {
    scheduler: Arc<EpochScheduler>,
    number: u64,
    workers: Vec<JoinHandle<()>>,
    worker_ids: Vec<ThreadId>,
    /// Closes the epoch, if the consumer awaits its end.
    closing: Option<JoinHandle<()>>,
    ended: bool,
}

impl Epoch {
    /// Epoch `number` in this order, from batch `first` on.
    pub(super) fn start(
        core: &Arc<LoaderCore>,
        number: u64,
        order: SampleOrder,
        first: u64,
    ) -> Result<Self> {
        if core.busy.swap(true, Ordering::Acquire) {
            return Err(LoaderError::Busy);
        }
        *lock(&core.position) = order.state(first);
        core.buffers.start_epoch();
        let mut epoch = Self {
            scheduler: Arc::new(EpochScheduler::new(core, order, first)),
            number,
            workers: Vec::new(),
            worker_ids: Vec::new(),
            closing: None,
            ended: false,
        };
        for worker in 0..core.workers {
            let scheduler = Arc::clone(&epoch.scheduler);
            let named = thread::Builder::new().name(format!("pinlane-load-{worker}"));
            match named.spawn(move || work(&scheduler, true)) {
                Ok(thread) => {
                    epoch.worker_ids.push(thread.thread().id());
                    epoch.workers.push(thread);
                }
                Err(error) if epoch.workers.is_empty() => return Err(LoaderError::Threads(error)),
                Err(_) => break, // fewer will do
            }
        }
        Ok(epoch)
    }

    /// The number of the epoch.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How far it has come; see [`Loader::state`](super::Loader::state).
    #[must_use]
    pub fn state(&self) -> EpochState {
        self.scheduler.core.state()
    }

    /// Wait until the next batch is ready, or the end is known, at most for `timeout`. Returns whether it is:
    /// then [`next`](Iterator::next) does not wait for samples. Always true without workers. For consumers
    /// that do something else in between, such as checking for interrupts.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.ended || self.reads_itself() || self.scheduler.wait_timeout(timeout)
    }

    /// The next batch, without blocking the thread; `None` at the end.
    ///
    /// Dropping the future loses no batch. Without workers it reads the samples on the thread that polls it.
    ///
    /// ```
    /// # use pinlane::load::{Loader, LoaderConfig, LoaderError, dataset::from_fn};
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let dataset = from_fn(10, [], |_, _| Ok(()));
    /// let loader = Loader::new(&device, dataset, LoaderConfig::default().batch(4))?;
    /// let mut epoch = loader.epoch(0)?;
    /// # let mut task = pin!(async {
    /// let mut samples = 0;
    /// while let Some(batch) = epoch.next_batch().await {
    ///     samples += batch?.len();
    /// }
    /// assert_eq!(samples, 10);
    /// # Ok::<(), LoaderError>(())
    /// # });
    /// # let mut context = Context::from_waker(Waker::noop());
    /// # while task.as_mut().poll(&mut context)?.is_pending() {}
    /// # Ok::<(), pinlane::Error>(())
    /// ```
    pub fn next_batch(&mut self) -> NextBatch<'_> {
        NextBatch { epoch: self }
    }

    /// Whether samples are read on the consumer's thread.
    fn reads_itself(&self) -> bool {
        self.scheduler.core.workers == 0
    }

    fn hand_out(&self, batch: Batch) -> Batch {
        lock(&self.scheduler.core.position).batch = batch.number + 1;
        batch
    }

    /// Close the epoch on a thread of its own, since that waits for workers, and for copies if `settle`.
    fn start_closing(&mut self, error: Option<LoaderError>, settle: bool) {
        self.ended = true;
        let scheduler = Arc::clone(&self.scheduler);
        let work = Arc::new(Mutex::new(Some((self.workers.split_off(0), error))));
        let close = move || {
            if let Some((workers, error)) = lock(&*work).take() {
                scheduler.set_closed(close(&scheduler, workers, error, settle));
            }
        };
        let named = thread::Builder::new().name("pinlane-load-end".to_owned());
        match named.spawn(close.clone()) {
            Ok(thread) => self.closing = Some(thread),
            Err(_) => close(), // without threads, block
        }
    }

    /// Wait until the closing thread holds nothing of the loader any more.
    fn join_closing(&mut self) {
        if let Some(thread) = self.closing.take() {
            join(thread);
        }
    }
}

/// Wait for a thread to end, unless it is this one: datasets and wakers are foreign code, which may use the
/// epoch on any of its threads.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        // A panic was reported by the thread itself.
        let _ = thread.join();
    }
}

/// Read and submit. A panic is reported to the consumer.
fn work(scheduler: &EpochScheduler, wait: bool) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scheduler.work(wait))) {
        scheduler.panicked(panic::text(panic));
    }
}

/// Stop the workers, wait for the last copies if `settle`, release the loader, return the error to report.
fn close(
    scheduler: &EpochScheduler,
    workers: Vec<JoinHandle<()>>,
    error: Option<LoaderError>,
    settle: bool,
) -> Option<LoaderError> {
    let core = &scheduler.core;
    scheduler.stop();
    workers.into_iter().for_each(join);
    scheduler.clear();
    let failed = match &error {
        _ if !settle => None,
        Some(_) => wait_for_copies(scheduler, PATIENCE_AFTER_ERROR),
        None => wait_for_copies(scheduler, PATIENCE),
    };
    // Batches from the first lost one on come again.
    let mut position = lock(&core.position);
    position.batch = position.batch.min(scheduler.lost.load(Ordering::Relaxed));
    drop(position);
    core.busy.store(false, Ordering::Release);
    match (error, failed) {
        (Some(error), Some(LoaderError::Device { error: stray, .. })) => {
            core.buffers.keep_stray(stray);
            Some(error)
        }
        (error, failed) => error.or(failed),
    }
}

/// Wait for the last copies, so that their errors are reported.
fn wait_for_copies(scheduler: &EpochScheduler, patience: Duration) -> Option<LoaderError> {
    let buffers = &scheduler.core.buffers;
    let batch = lock(&scheduler.core.position).batch;
    match catch_unwind(AssertUnwindSafe(|| buffers.wait_for_all(patience))) {
        Ok(failure) => failure.map(|failure| scheduler.device_error(batch, failure)),
        Err(panic) => {
            let text = panic::text(panic);
            Some(LoaderError::LoaderPanicked { batch, text })
        }
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.closing.is_some() {
            self.join_closing();
            return self.scheduler.schedule().closed.take()?.map(Err);
        }
        if self.ended {
            return None;
        }
        if self.reads_itself() {
            let start = Instant::now();
            work(&self.scheduler, false);
            self.scheduler.consumer_waited(start);
        }
        let error = match self.scheduler.take() {
            Some(Ok(batch)) => return Some(Ok(self.hand_out(batch))),
            end => end.and_then(Result::err),
        };
        self.ended = true;
        let workers = self.workers.split_off(0);
        close(&self.scheduler, workers, error, true).map(Err)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error may still come at the end.
        let schedule = self.scheduler.schedule();
        let most = match self.ended {
            true => usize::from(self.closing.is_some()),
            false => (schedule.end - schedule.taken) as usize + 1,
        };
        (0, Some(most))
    }
}

impl FusedIterator for Epoch {}

impl Drop for Epoch {
    fn drop(&mut self) {
        if self.worker_ids.contains(&thread::current().id()) {
            // A worker cannot wait for its own end, and others may wait for a lock that it holds.
            if !self.ended {
                self.start_closing(None, false);
            }
            return;
        }
        self.join_closing();
        if !self.ended {
            close(&self.scheduler, self.workers.split_off(0), None, false);
        }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("number", &self.number)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The next batch of an epoch. Made by [`Epoch::next_batch`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct NextBatch<'a> {
    epoch: &'a mut Epoch,
}

impl Future for NextBatch<'_> {
    type Output = Option<Result<Batch>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let epoch = &mut *self.epoch;
        if epoch.closing.is_none() {
            if epoch.ended || epoch.reads_itself() {
                return Poll::Ready(epoch.next());
            }
            match ready!(epoch.scheduler.poll_take(context)) {
                Some(Ok(batch)) => return Poll::Ready(Some(Ok(epoch.hand_out(batch)))),
                end => epoch.start_closing(end.and_then(Result::err), true),
            }
        }
        let error = ready!(epoch.scheduler.poll_closed(context));
        epoch.join_closing();
        Poll::Ready(error.map(Err))
    }
}
