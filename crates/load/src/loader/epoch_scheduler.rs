//! One running epoch: which batch to open next, which are ready, and when to stop.
//!
//! One worker opens a batch, while the others wait for it; all read samples into its slot; the one that
//! finishes the last sample packs the batch and submits its copy; the consumer takes batches in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pinlane_core::ErrorKind;
use pinlane_core::internal::lock;

use crate::SampleOrder;

use super::buffers::CopyFailure;
use super::pending_batch::PendingBatch;
use super::{Batch, LoaderCore, LoaderError, Result, elapsed_ns};

pub(super) struct EpochScheduler {
    pub(super) core: Arc<LoaderCore>,
    pub(super) order: SampleOrder,
    /// The number of batches still needed: up to the first that failed, none if cancelled.
    needed: AtomicU64,
    /// The first batch that was submitted but is known not to have reached the device.
    pub(super) lost: AtomicU64,
    schedule: Mutex<Schedule>,
    /// Wakes workers.
    work: Condvar,
    /// Wakes the consumer.
    ready: Condvar,
}

#[derive(Default)]
pub(super) struct Schedule {
    /// The next batch to open.
    next: u64,
    /// Number of batches, or one more than the first that failed.
    pub(super) end: u64,
    /// Batches that may have unclaimed samples, oldest first.
    open: VecDeque<Arc<PendingBatch>>,
    /// A thread is opening the next batch.
    opening: bool,
    /// The next batch for the consumer.
    pub(super) taken: u64,
    done: BTreeMap<u64, Result<Batch>>,
    /// The consumer, if it awaits a batch, and since when.
    awaiting: Option<(Waker, Instant)>,
    /// The epoch is closed, with this error.
    pub(super) closed: Option<Option<LoaderError>>,
}

impl Schedule {
    /// Take the next batch for the consumer: `Ready(None)` at the end.
    fn take_next(&mut self) -> Poll<Option<Result<Batch>>> {
        if self.taken >= self.end {
            return Poll::Ready(None);
        }
        let Some(outcome) = self.done.remove(&self.taken) else {
            return Poll::Pending;
        };
        self.taken += 1;
        Poll::Ready(Some(outcome))
    }

    /// Wake this consumer on the next change.
    fn register(&mut self, context: &Context<'_>) {
        let since = self.awaiting.as_ref().map(|(_, since)| *since);
        self.awaiting = Some((context.waker().clone(), since.unwrap_or_else(Instant::now)));
    }
}

impl EpochScheduler {
    pub(super) fn new(core: &Arc<LoaderCore>, order: SampleOrder, first: u64) -> Self {
        let end = order.batches() as u64;
        Self {
            core: Arc::clone(core),
            order,
            needed: AtomicU64::new(u64::MAX),
            lost: AtomicU64::new(u64::MAX),
            schedule: Mutex::new(Schedule {
                next: first.min(end),
                end,
                taken: first.min(end),
                ..Schedule::default()
            }),
            work: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    /// A batch with unclaimed samples. With `wait`, waits for one; `None` if there is none.
    pub(super) fn next_batch(&self, wait: bool) -> Option<Arc<PendingBatch>> {
        loop {
            let mut schedule = self.schedule();
            if self.is_stopped() {
                return None;
            }
            while let Some(batch) = schedule.open.front() {
                if batch.slot.has_unclaimed() {
                    return Some(Arc::clone(batch));
                }
                schedule.open.pop_front();
            }
            if self.may_open(&schedule) {
                self.open_next(schedule, true);
            } else if wait && schedule.next < schedule.end {
                let (opening, start) = (schedule.opening, Instant::now());
                drop(self.work.wait(schedule));
                let mut stats = lock(&self.core.buffers.stats);
                match opening {
                    true => stats.slot_wait_ns += elapsed_ns(start),
                    false => stats.held_back_ns += elapsed_ns(start),
                }
            } else {
                return None;
            }
        }
    }

    fn may_open(&self, schedule: &Schedule) -> bool {
        let end = schedule.end.min(schedule.taken + self.core.prefetch);
        !schedule.opening && schedule.next < end
    }

    /// Open the next batch, if possible without waiting, so that no thread is idle at the end of this one.
    pub(super) fn open_ahead(&self) {
        let schedule = self.schedule();
        if !self.is_stopped() && self.may_open(&schedule) {
            self.open_next(schedule, false);
        }
    }

    /// Open the next batch. No other thread opens one meanwhile.
    fn open_next(&self, mut schedule: MutexGuard<'_, Schedule>, wait: bool) {
        let number = schedule.next;
        schedule.opening = true;
        drop(schedule);
        let opened = self.open(number, wait);
        let mut schedule = self.schedule();
        schedule.opening = false;
        match opened {
            Ok(Some(batch)) => {
                schedule.open.push_back(Arc::new(batch));
                schedule.next = number + 1;
            }
            Ok(None) => {}
            Err(error) => return self.fail(schedule, number, error),
        }
        drop(schedule);
        self.work.notify_all();
    }

    /// A batch is ready, or has failed.
    pub(super) fn put(&self, number: u64, outcome: Result<Batch>) {
        let mut schedule = self.schedule();
        match outcome {
            Ok(batch) => {
                // Unless it was given up after a panic.
                schedule.done.entry(number).or_insert(Ok(batch));
                drop(schedule);
                self.wake_consumer();
            }
            Err(error) => self.fail(schedule, number, error),
        }
    }

    /// End the epoch with this batch, unless an earlier one fails too.
    fn fail(&self, mut schedule: MutexGuard<'_, Schedule>, number: u64, error: LoaderError) {
        self.needed.fetch_min(number + 1, Ordering::Relaxed);
        schedule.end = schedule.end.min(number + 1);
        schedule.next = schedule.next.max(number + 1); // do not try it again
        schedule.done.insert(number, Err(error));
        drop(schedule);
        self.work.notify_all();
        self.core.buffers.wake();
        self.wake_consumer();
    }

    /// A thread panicked: batches that are not ready never will be.
    pub(super) fn panicked(&self, text: String) {
        let schedule = self.schedule();
        let missing = |batch: &u64| !schedule.done.contains_key(batch);
        let batch = (schedule.taken..).find(missing).expect("batches end");
        self.fail(schedule, batch, LoaderError::LoaderPanicked { batch, text });
    }

    /// The next batch for the consumer; `None` at the end. Waits for it.
    pub(super) fn take(&self) -> Option<Result<Batch>> {
        self.wait_timeout(Duration::MAX);
        let Poll::Ready(taken) = self.schedule().take_next() else {
            unreachable!("only the consumer takes batches");
        };
        self.work.notify_all();
        taken
    }

    /// Like [`take`](Self::take), without waiting.
    pub(super) fn poll_take(&self, context: &Context<'_>) -> Poll<Option<Result<Batch>>> {
        let mut schedule = self.schedule();
        let taken = schedule.take_next();
        if taken.is_pending() {
            schedule.register(context);
            return taken;
        }
        if let Some((_, since)) = schedule.awaiting.take() {
            self.consumer_waited(since);
        }
        drop(schedule);
        self.work.notify_all();
        taken
    }

    /// Wait until a batch is ready or the end is known, at most for `timeout`. Returns whether it is.
    pub(super) fn wait_timeout(&self, timeout: Duration) -> bool {
        let is_pending = |schedule: &mut Schedule| {
            schedule.taken < schedule.end && !schedule.done.contains_key(&schedule.taken)
        };
        let mut schedule = self.schedule();
        if is_pending(&mut schedule) {
            let start = Instant::now();
            let woken = self.ready.wait_timeout_while(schedule, timeout, is_pending);
            schedule = woken.unwrap_or_else(PoisonError::into_inner).0;
            self.consumer_waited(start);
        }
        !is_pending(&mut schedule)
    }

    pub(super) fn consumer_waited(&self, since: Instant) {
        lock(&self.core.buffers.stats).consumer_wait_ns += elapsed_ns(since);
    }

    fn wake_consumer(&self) {
        self.ready.notify_all();
        let waker = self.schedule().awaiting.clone();
        // Without the lock: a waker is foreign code.
        if let Some((waker, _)) = waker {
            waker.wake();
        }
    }

    /// The epoch is closed, with this error.
    pub(super) fn set_closed(&self, error: Option<LoaderError>) {
        self.schedule().closed = Some(error);
        self.wake_consumer();
    }

    pub(super) fn poll_closed(&self, context: &Context<'_>) -> Poll<Option<LoaderError>> {
        let mut schedule = self.schedule();
        match schedule.closed.take() {
            Some(error) => Poll::Ready(error),
            None => {
                schedule.register(context);
                Poll::Pending
            }
        }
    }

    /// Cancel the rest of the epoch.
    pub(super) fn stop(&self) {
        let schedule = self.schedule();
        self.needed.store(0, Ordering::Relaxed);
        drop(schedule);
        self.work.notify_all();
        self.core.buffers.wake();
    }

    /// Drop batches that were not taken, after all workers have ended.
    pub(super) fn clear(&self) {
        let mut schedule = self.schedule();
        let done = std::mem::take(&mut schedule.done);
        let open = std::mem::take(&mut schedule.open);
        drop(schedule);
        drop(done);
        let unread = open.into_iter().filter_map(Arc::into_inner);
        for slot in unread.filter_map(|batch| batch.slot.into_inner()) {
            self.core.buffers.return_slot(slot);
        }
    }

    /// The error of a batch, or of an earlier one whose copy it waited for.
    pub(super) fn device_error(&self, number: u64, failure: CopyFailure) -> LoaderError {
        let CopyFailure { batch, lost, error } = failure;
        let batch = batch.unwrap_or(number);
        if lost {
            self.lost.fetch_min(batch, Ordering::Relaxed);
        }
        let hint = match error.kind() {
            ErrorKind::OverBudget | ErrorKind::OutOfMemory => {
                self.core.layout.largest_field_hint(&self.order)
            }
            _ => None,
        };
        LoaderError::Device { batch, hint, error }
    }

    fn is_stopped(&self) -> bool {
        self.needed.load(Ordering::Relaxed) == 0
    }

    /// Whether a batch is no longer needed.
    pub(super) fn is_cancelled(&self, number: u64) -> bool {
        number >= self.needed.load(Ordering::Relaxed)
    }

    pub(super) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        lock(&self.schedule)
    }
}
