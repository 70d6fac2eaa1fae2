//! Buffers that were dropped while in flight, freed once the device is done with them.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::Fence;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// A value to free later: dropping it frees the memory.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Keeps payloads until all their fences have fired.
pub(crate) struct DeferredFree<F> {
    parked: Mutex<Vec<Parked<F>>>,
    /// Length of `parked`, readable without the lock. Nearly always 0.
    count: AtomicUsize,
}

struct Parked<F> {
    fences: Vec<F>,
    /// Freed explicitly: a panic that unwinds through the `DeferredFree` must not free memory in flight.
    payload: ManuallyDrop<Payload>,
}

/// Frees payloads that the device is finished with. If one panics, the others are still freed before the
/// first panic resumes.
fn free_all<F>(landed: Vec<Parked<F>>) -> usize {
    let freed = landed.len();
    let mut panicked = None;
    for parked in landed {
        let payload = ManuallyDrop::into_inner(parked.payload);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            panicked.get_or_insert(panic);
        }
    }
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
    freed
}

/// Result of [`DeferredFree::close`].
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Closed {
    /// Number freed, because their fences had fired.
    pub(crate) freed: usize,
    /// Number leaked, because the device may still use them.
    pub(crate) abandoned: usize,
}

impl<F: Fence> DeferredFree<F> {
    pub(crate) fn new() -> Self {
        Self {
            parked: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// Keeps `payload` until all `fences` have fired.
    pub(crate) fn defer(&self, fences: Vec<F>, payload: Payload) {
        let mut parked = lock(&self.parked);
        parked.push(Parked {
            fences,
            payload: ManuallyDrop::new(payload),
        });
        self.count.store(parked.len(), Ordering::Release);
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Frees payloads whose fences have fired, and returns how many. A fence whose query fails is queried
    /// again later.
    pub(crate) fn reclaim(&self) -> usize {
        if self.len() == 0 {
            return 0;
        }
        let landed = {
            let mut parked = lock(&self.parked);
            let has_landed = |parked: &mut Parked<F>| {
                parked.fences.retain(|fence| !fence.has_let_go());
                parked.fences.is_empty()
            };
            let landed = parked.extract_if(.., has_landed).collect();
            self.count.store(parked.len(), Ordering::Release);
            landed
        };
        // Outside the lock, because this calls the driver.
        free_all(landed)
    }

    /// Empties it for good: waits up to `patience` for each fence, frees the payloads whose fences have
    /// fired, and leaks the rest, since memory that an engine may still write must never be freed. After
    /// the first fence that times out, it no longer waits for any.
    pub(crate) fn close(&self, mut patience: Duration) -> Closed {
        let parked = std::mem::take(&mut *lock(&self.parked));
        self.count.store(0, Ordering::Release);
        let (mut landed, mut abandoned) = (Vec::new(), 0);
        for parked in parked {
            let let_go = |fence: &F| fence.lets_go_within(patience);
            if parked.fences.iter().all(let_go) {
                landed.push(parked);
            } else {
                patience = Duration::ZERO;
                abandoned += 1;
            }
        }
        Closed {
            freed: free_all(landed),
            abandoned,
        }
    }
}
