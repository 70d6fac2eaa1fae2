//! Memory for batches, kept from one to the next and from epoch to epoch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinlane_core::internal::exact_pool;
use pinlane_core::{Device, Error, PinnedPool, Stream};

use super::slot::{Berth, Flying, Slot};
use super::stats::Counters;

/// How long anyone waits before seeing whether to stop.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// How long a loader that is dropped waits for its copies. Those that take longer are left to the
/// device, which frees their memory when they are done.
const DROP_PATIENCE: Duration = Duration::from_millis(100);

/// Page-locked slots and device memory that no batch uses now, or whose copy is under way.
pub(super) struct Depot {
    device: Device,
    pinned_pool: PinnedPool,
    /// Where all copies go.
    pub(super) stream: Stream,
    sizes: Sizes,
    pub(super) counters: Arc<Counters>,
    /// Slots that exist, wherever they are.
    made: Arc<AtomicUsize>,
    store: Mutex<Store>,
    /// A slot came back.
    back: Condvar,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) slot_bytes: usize,
    pub(super) finished_bytes: usize,
    /// Slots at most.
    pub(super) slots: usize,
    /// Device memory of so many batches is kept.
    pub(super) berths: usize,
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) idle: Vec<Slot>,
    /// In the order of submission.
    pub(super) flying: VecDeque<Flying>,
    berths: VecDeque<Berth>,
    /// More slots were refused: there are as many as there can be.
    refused: bool,
}

/// A failure of a batch's copy.
pub(super) struct Failed {
    /// Which batch, if it is known to be another than the one at hand.
    pub(super) batch: Option<u64>,
    /// That batch is not on the device, or nobody can tell.
    pub(super) lost: bool,
    pub(super) error: Error,
}

impl Failed {
    /// Whether it is the one to tell of both.
    pub(super) fn comes_before(&self, other: &Self) -> bool {
        (!self.lost, self.batch) < (!other.lost, other.batch)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self {
            batch: None,
            lost: false,
            error,
        }
    }
}

impl Depot {
    /// All copies go onto `stream`.
    pub(super) fn new(
        device: &Device,
        stream: Stream,
        sizes: Sizes,
        counters: &Arc<Counters>,
    ) -> Self {
        Self {
            stream,
            device: device.clone(),
            pinned_pool: exact_pool(device),
            sizes,
            counters: Arc::clone(counters),
            made: Arc::default(),
            store: Mutex::default(),
            back: Condvar::new(),
        }
    }

    /// An epoch begins: more slots may be had than in the last, and copies of that are not its own.
    pub(super) fn begin(&self) {
        let mut store = self.store();
        store.refused = false;
        store
            .flying
            .iter_mut()
            .for_each(|flying| flying.stale = true);
    }

    /// A slot that nobody uses. `None` when `stopped` says so. Only one thread asks at a time.
    pub(super) fn slot(&self, stopped: impl Fn() -> bool) -> Result<Option<Slot>, Failed> {
        loop {
            if let Some(slot) = self.idle_or_new()? {
                return Ok(Some(slot));
            }
            let mut store = self.store();
            let waited = Instant::now();
            let mut landed = Ok(None);
            if let Some(flying) = store.flying.pop_front() {
                drop(store);
                landed = self.await_landing(flying, &stopped);
            } else if store.idle.is_empty() {
                // Others write to all of them.
                drop(self.back.wait_timeout(store, GLANCE));
            }
            self.counters.slot_wait_ns.add_since(waited);
            if let Some(slot) = landed? {
                return Ok(Some(slot));
            }
            if stopped() {
                return Ok(None);
            }
        }
    }

    /// A slot that nobody uses, if there is one. Only one thread asks at a time.
    pub(super) fn slot_at_once(&self) -> Result<Option<Slot>, Failed> {
        if let Some(slot) = self.idle_or_new()? {
            return Ok(Some(slot));
        }
        let flying = self.store().flying.pop_front();
        let Some(flying) = flying else {
            return Ok(None);
        };
        match flying.transfer.is_done() {
            Ok(false) => {
                self.store().flying.push_front(flying);
                Ok(None)
            }
            Ok(true) => self.land(flying, Ok(())),
            Err(error) => self.land(flying, Err(error)),
        }
    }

    /// A slot whose copy is done, or a new one.
    fn idle_or_new(&self) -> Result<Option<Slot>, Failed> {
        let mut store = self.store();
        if let Some(slot) = store.idle.pop() {
            return Ok(Some(slot));
        }
        let made = self.made.load(Ordering::Relaxed);
        // Where there are none, none will come back: then the refusal is told.
        if made >= self.sizes.slots || (store.refused && made > 0) {
            return Ok(None);
        }
        drop(store);
        match Slot::new(
            &self.device,
            &self.pinned_pool,
            self.sizes.slot_bytes,
            &self.made,
        ) {
            Ok(slot) => Ok(Some(slot)),
            Err(error) => self.refuse(error).map(|()| None),
        }
    }

    /// There is no more memory to pin: go on with what there is.
    fn refuse(&self, error: Error) -> Result<(), Failed> {
        if self.made.load(Ordering::Relaxed) == 0 || is_fatal(&error) {
            return Err(error.into());
        }
        self.keep_stray(error);
        self.store().refused = true;
        Ok(())
    }

    /// A slot that was not copied.
    pub(super) fn put(&self, slot: Slot) {
        self.store().idle.push(slot);
        self.back.notify_all();
    }

    /// A slot whose copy is under way.
    pub(super) fn fly(&self, flying: Flying) {
        self.store().flying.push_back(flying);
        self.back.notify_all();
    }

    /// Somebody waits who should look whether to stop.
    pub(super) fn rouse(&self) {
        self.back.notify_all();
    }

    /// Device memory for one batch.
    pub(super) fn berth(&self) -> pinlane_core::Result<Berth> {
        let kept = self.store().berths.pop_front();
        match kept {
            Some(berth) => Ok(berth),
            None => Ok(Berth {
                raw: self.stream.alloc(self.sizes.slot_bytes)?,
                finished: self.stream.alloc(self.sizes.finished_bytes)?,
            }),
        }
    }

    /// Device memory that its batch does not need any more. Work on it may be under way: whatever is
    /// copied into it next waits for that.
    pub(super) fn give_back(&self, berth: Berth) {
        let mut store = self.store();
        if berth.is_sound() && store.berths.len() < self.sizes.berths {
            store.berths.push_back(berth);
        } else {
            drop(store); // the driver is called without the lock
            drop(berth);
        }
    }

    /// Keep an error that nobody can be told of.
    pub(super) fn keep_stray(&self, error: Error) {
        pinlane_core::internal::keep_stray_error(&self.device, error);
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        if let Err(failed) = self.settle(DROP_PATIENCE) {
            self.keep_stray(failed.error);
        }
    }
}

pub(super) fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}
