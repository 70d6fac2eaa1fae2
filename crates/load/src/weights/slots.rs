//! The pinned memory that pieces are read into.

use pinlane_core::internal::idle_buffers;
use pinlane_core::{Device, PinnedBuf, Result};

/// A pinned slot of a load.
pub(super) type SlotBuf = PinnedBuf<u8>;

/// A slot: one of an earlier load, or a new one.
pub(super) fn take_slot(device: &Device, bytes: usize) -> Result<SlotBuf> {
    match idle_buffers(device).take(bytes) {
        Some(slot) => Ok(slot),
        None => device.pinned(bytes),
    }
}

/// Keeps a slot for the next load.
pub(super) fn put_slot(device: &Device, slot: SlotBuf) {
    idle_buffers(device).put(slot);
}

/// What a load may pin: the unused budget, and the slots of earlier loads.
pub(super) fn left_bytes(device: &Device) -> Result<u64> {
    let budget = device.budget();
    let left = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    Ok(left.saturating_add(idle_buffers(device).bytes()))
}
