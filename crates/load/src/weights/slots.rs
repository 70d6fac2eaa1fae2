//! The pinned memory that pieces are read into.

use pinlane_core::internal::pinned_store;
use pinlane_core::{Device, PoolBuf, Result};

/// A pinned slot of a load. Dropped, it is kept for the next load.
pub(super) type SlotBuf = PoolBuf<u8>;

/// A slot: one of an earlier load, or a new one.
pub(super) fn take_slot(device: &Device, bytes: usize) -> Result<SlotBuf> {
    pinned_store(device).take(bytes)
}

/// What a load may pin: the unused budget, and the slots of earlier loads.
pub(super) fn left_bytes(device: &Device) -> Result<u64> {
    let budget = device.budget();
    let left = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    Ok(left.saturating_add(pinned_store(device).stats().cached_bytes))
}
