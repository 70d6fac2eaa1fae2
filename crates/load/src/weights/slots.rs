//! Pinned memory that pieces are read into.

use pinlane_core::internal::pinned_store;
use pinlane_core::{Device, PoolBuf, Result};

/// A slot: one of an earlier load, or a new one.
pub(super) fn another(device: &Device, bytes: usize) -> Result<PoolBuf<u8>> {
    pinned_store(device).take(bytes)
}

/// What a load may page-lock without asking anybody to give some back.
pub(super) fn left_bytes(device: &Device) -> Result<u64> {
    let budget = device.budget();
    let left = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    Ok(left.saturating_add(pinned_store(device).stats().cached_bytes))
}
