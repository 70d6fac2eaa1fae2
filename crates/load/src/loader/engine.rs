//! One epoch under way: which batch is opened next, which are ready, and when to stop.
//!
//! ```text
//!   open.rs      a batch with samples to claim; else the next is opened by one thread, which waits
//!                for a slot, while the others wait for it
//!   read.rs      samples are read into the slot, by all threads
//!   deliver.rs   whoever ends the last sample packs the batch, submits its copy, puts it out
//!   take         the consumer takes batches in their order
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pinlane_driver::ErrorKind;

use crate::SampleOrder;
use crate::dataset::Dataset;
use pinlane_core::Error;

use super::depot::{Depot, Failed};
use super::finisher::Finisher;
use super::layout::Layout;
use super::sheet::Sheet;
use super::stats::Counters;
use super::{Batch, LoaderError, OnError};

/// What an epoch needs that others need, too.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) dataset: Arc<dyn Dataset>,
    pub(super) layout: Arc<Layout>,
    pub(super) finisher: Arc<Finisher>,
    pub(super) depot: Arc<Depot>,
    pub(super) counters: Arc<Counters>,
    pub(super) on_error: OnError,
    pub(super) prefetch: u64,
    /// Threads that read samples.
    pub(super) workers: usize,
    /// Samples that a thread claims at a time.
    pub(super) run: usize,
}

/// One epoch under way.
pub(super) struct Engine {
    pub(super) means: Means,
    pub(super) order: SampleOrder,
    /// Nobody wants the rest.
    stop: AtomicBool,
    /// The first batch that failed: what comes after it is not needed.
    failed: AtomicU64,
    /// The first batch that did not get to the device, though it was submitted.
    lost: AtomicU64,
    desk: Mutex<Desk>,
    /// For workers: there may be something to do.
    pub(super) work: Condvar,
    /// For the consumer: there may be a batch.
    ready: Condvar,
}

pub(super) struct Desk {
    /// The next batch to be opened.
    pub(super) next: u64,
    /// Batches of the epoch, or one more than the first that failed.
    pub(super) end: u64,
    /// Batches that may have samples to claim, the oldest first.
    pub(super) open: VecDeque<Arc<Sheet>>,
    /// Somebody is about to open the next.
    pub(super) opening: bool,
    /// The next batch for the consumer.
    pub(super) taken: u64,
    done: BTreeMap<u64, Result<Batch, LoaderError>>,
}

impl Engine {
    /// An epoch from batch `first` on.
    pub(super) fn new(means: Means, order: SampleOrder, first: u64) -> Self {
        let end = order.batches() as u64;
        Self {
            means,
            order,
            stop: AtomicBool::new(false),
            failed: AtomicU64::new(u64::MAX),
            lost: AtomicU64::new(u64::MAX),
            desk: Mutex::new(Desk {
                next: first.min(end),
                end,
                open: VecDeque::new(),
                opening: false,
                taken: first.min(end),
                done: BTreeMap::new(),
            }),
            work: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    /// A batch is ready, or has failed.
    pub(super) fn put(&self, number: u64, outcome: Result<Batch, LoaderError>) {
        let mut desk = self.desk();
        match outcome {
            Ok(batch) => {
                // Unless it was given up when a thread died.
                desk.done.entry(number).or_insert(Ok(batch));
                self.ready.notify_all();
            }
            Err(error) => self.fail(&mut desk, number, error),
        }
    }

    /// The epoch ends with this batch, unless an earlier one fails, too.
    pub(super) fn fail(&self, desk: &mut Desk, number: u64, error: LoaderError) {
        self.failed.fetch_min(number, Ordering::Relaxed);
        desk.end = desk.end.min(number + 1);
        desk.next = desk.next.max(number + 1); // it is not tried again
        desk.done.insert(number, Err(error));
        self.work.notify_all();
        self.ready.notify_all();
        self.means.depot.rouse();
    }

    /// A thread died with these words: all that is not ready never will be.
    pub(super) fn died(&self, text: String) {
        let mut desk = self.desk();
        let missing = |batch: &u64| !desk.done.contains_key(batch);
        let batch = (desk.taken..).find(missing).expect("batches end");
        self.fail(&mut desk, batch, LoaderError::Died { batch, text });
    }

    /// The next batch for the consumer; `None` at the end. Waits for it.
    pub(super) fn take(&self) -> Option<Result<Batch, LoaderError>> {
        let mut desk = self.desk();
        let mut waited = None;
        let taken = loop {
            let number = desk.taken;
            if number >= desk.end {
                break None;
            }
            if let Some(outcome) = desk.done.remove(&number) {
                desk.taken += 1;
                break Some(outcome);
            }
            waited.get_or_insert_with(Instant::now);
            let woken = self.ready.wait(desk);
            desk = woken.unwrap_or_else(PoisonError::into_inner);
        };
        drop(desk);
        if let Some(waited) = waited {
            self.means.counters.consumer_wait_ns.add_since(waited);
        }
        self.work.notify_all();
        taken
    }

    /// Wait until there is something to take, or nothing left, at most until then. Whether it is so.
    pub(super) fn await_next(&self, until: Instant) -> bool {
        let began = Instant::now();
        let mut waited = false;
        let mut desk = self.desk();
        let ready = loop {
            if desk.taken >= desk.end || desk.done.contains_key(&desk.taken) {
                break true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            waited = true;
            let woken = self.ready.wait_timeout(desk, left);
            desk = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(desk);
        if waited {
            self.means.counters.consumer_wait_ns.add_since(began);
        }
        ready
    }

    /// Nobody wants the rest.
    pub(super) fn stop(&self) {
        let desk = self.desk();
        self.stop.store(true, Ordering::Relaxed);
        drop(desk);
        self.work.notify_all();
        self.means.depot.rouse();
    }

    /// Batches that nobody took, once no thread is left.
    pub(super) fn clear(&self) {
        let mut desk = self.desk();
        let done = std::mem::take(&mut desk.done);
        let open = std::mem::take(&mut desk.open);
        drop(desk);
        drop(done);
        let unread = open.into_iter().filter_map(Arc::into_inner);
        for slot in unread.filter_map(|sheet| sheet.slot.into_slot()) {
            self.means.depot.put(slot);
        }
    }

    /// Batches that are left for the consumer, if none fails.
    pub(super) fn left(&self) -> u64 {
        let desk = self.desk();
        desk.end - desk.taken
    }

    /// The first batch that is known not to have got to the device, though it was submitted.
    pub(super) fn first_lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The error of a batch, or of the one that it had to wait for.
    pub(super) fn told(&self, number: u64, failed: Failed) -> LoaderError {
        let Failed { batch, lost, error } = failed;
        let batch = batch.unwrap_or(number);
        if lost {
            self.lost.fetch_min(batch, Ordering::Relaxed);
        }
        let room = lacks_memory(&error).then(|| self.means.layout.largest_room(&self.order));
        LoaderError::Device {
            batch,
            room: room.flatten(),
            error,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether nobody wants this batch any more.
    pub(super) fn is_abandoned(&self, number: u64) -> bool {
        self.is_stopped() || self.failed.load(Ordering::Relaxed) < number
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is too little memory of either kind.
fn lacks_memory(error: &Error) -> bool {
    match error {
        Error::OverBudget { .. } => true,
        Error::Driver(error) => matches!(error.kind, ErrorKind::OutOfMemory),
        _ => false,
    }
}
