//! What a loader and its epochs share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{EpochState, OrderConfig};

use super::engine::Means;

/// What a loader and its epoch share.
pub(super) struct Core {
    pub(super) order: OrderConfig,
    pub(super) samples: usize,
    pub(super) means: Means,
    /// Epoch, and batches of it that were handed out.
    place: Mutex<(u64, u64)>,
    /// There is an epoch under way.
    pub(super) busy: AtomicBool,
}

impl Core {
    pub(super) fn new(order: OrderConfig, samples: usize, means: Means) -> Self {
        Self {
            order,
            samples,
            means,
            place: Mutex::new((0, 0)),
            busy: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> EpochState {
        let place = self.place.lock();
        let (epoch, batch) = *place.unwrap_or_else(PoisonError::into_inner);
        EpochState::new(epoch, batch, &self.order, self.samples)
    }

    pub(super) fn handed_out(&self, epoch: u64, batches: u64) {
        let place = self.place.lock();
        *place.unwrap_or_else(PoisonError::into_inner) = (epoch, batches);
    }

    /// Batches of the epoch under way, from this one on, did not reach the device.
    pub(super) fn lost(&self, batch: u64) {
        let place = self.place.lock();
        let mut place = place.unwrap_or_else(PoisonError::into_inner);
        place.1 = place.1.min(batch);
    }

    /// The epoch is over.
    pub(super) fn release(&self) {
        self.busy.store(false, Ordering::Release);
    }
}
