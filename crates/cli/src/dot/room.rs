//! Whether vectors of this length fit, asked before anything is allocated.

use anyhow::bail;
use pinlane::Device;

/// Both vectors, an element of each.
const ITEM_BYTES: u64 = 8;

/// For partial sums, the result, and what allocations are rounded up to.
const BESIDE_BYTES: u64 = 8 << 20;

/// Fails where the device or the host has no room, with what would fit.
pub(super) fn check(device: &Device, items: usize) -> anyhow::Result<()> {
    let needed_bytes = items as u64 * ITEM_BYTES;
    let on_device = device
        .memory_info()?
        .free_bytes
        .saturating_sub(BESIDE_BYTES);
    if needed_bytes > on_device {
        bail!(
            "-n {items} needs {} of device memory, where {} are free; choose -n {} or less",
            gb(needed_bytes),
            gb(on_device),
            on_device / ITEM_BYTES
        );
    }
    let budget = device.budget();
    let limit_bytes = budget.limit_bytes()?.saturating_sub(budget.in_use_bytes());
    // What may be pinned is half of what is there. The other half is for the vectors in ordinary
    // memory, and where the device is simulated, for its memory too.
    let for_vectors = match device.info().simulated {
        None => limit_bytes,
        Some(_) => limit_bytes / 3 * 2,
    };
    if needed_bytes > for_vectors {
        bail!(
            "-n {items} needs {} of pinned memory, where {} can be had; choose -n {} or less, or \
             set PINLANE_PINNED_LIMIT",
            gb(needed_bytes),
            gb(for_vectors),
            for_vectors / ITEM_BYTES
        );
    }
    Ok(())
}

fn gb(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}
