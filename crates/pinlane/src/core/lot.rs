//! The parking lot: buffers whose owner has gone while they were in flight.

use std::any::Any;
use std::time::Duration;

use super::Fence;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// What is parked: dropping it frees the memory.
pub(crate) type Cargo = Box<dyn Any + Send>;

/// Keeps cargo until all its fences have fired.
pub(crate) struct Lot<F> {
    parked: Mutex<Vec<Parked<F>>>,
    /// Length of `parked`, readable without the lock: nearly always 0.
    count: AtomicUsize,
}

struct Parked<F> {
    fences: Vec<F>,
    cargo: Cargo,
}

/// What [`Lot::close`] did.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Closed {
    /// Freed, since their fences had fired.
    pub(crate) freed: usize,
    /// Left alone for good, since the device never let go of them.
    pub(crate) abandoned: usize,
}

impl<F: Fence> Lot<F> {
    pub(crate) fn new() -> Self {
        Self {
            parked: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// Keep `cargo` until all `fences` have fired.
    pub(crate) fn park(&self, fences: Vec<F>, cargo: Cargo) {
        let mut parked = lock(&self.parked);
        parked.push(Parked { fences, cargo });
        self.count.store(parked.len(), Ordering::Release);
    }

    /// How many are parked.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Free what has landed meanwhile. How many. A fence that cannot be asked now is asked later.
    pub(crate) fn reclaim(&self) -> usize {
        if self.len() == 0 {
            return 0;
        }
        let landed = {
            let mut parked = lock(&self.parked);
            let mut landed = Vec::new();
            let mut at = 0;
            while at < parked.len() {
                parked[at].fences.retain(|fence| !fence.has_let_go());
                if parked[at].fences.is_empty() {
                    landed.push(parked.swap_remove(at));
                } else {
                    at += 1;
                }
            }
            self.count.store(parked.len(), Ordering::Release);
            landed
        };
        // Freed outside of the lock: it calls the driver.
        landed.len()
    }

    /// Empty the lot for good: wait up to `patience` for each fence, free what has landed, and
    /// leave the rest alone, since memory that an engine may still write must never be freed.
    pub(crate) fn close(&self, patience: Duration) -> Closed {
        let parked = std::mem::take(&mut *lock(&self.parked));
        self.count.store(0, Ordering::Release);
        let mut closed = Closed::default();
        for Parked { fences, cargo } in parked {
            if fences.iter().all(|fence| fence.lets_go_within(patience)) {
                drop(cargo);
                closed.freed += 1;
            } else {
                std::mem::forget(cargo);
                closed.abandoned += 1;
            }
        }
        closed
    }
}
