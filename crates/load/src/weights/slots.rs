//! Pinned memory that pieces are read into.

use pinlane_core::internal::idle_buffers;
use pinlane_core::{Device, PinnedBuf, Result};

/// A slot: one of an earlier load, or a new one.
pub(super) fn another(device: &Device, bytes: usize) -> Result<PinnedBuf<u8>> {
    match idle_buffers(device).take(bytes) {
        Some(slot) => Ok(slot),
        None => device.pinned(bytes),
    }
}

/// What a load may page-lock without asking anybody to give some back.
pub(super) fn left_bytes(device: &Device) -> Result<u64> {
    let budget = device.budget();
    let left = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    Ok(left.saturating_add(idle_buffers(device).bytes()))
}
